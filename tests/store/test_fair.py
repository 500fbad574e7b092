"""Fair shares: between the keys of a queue, whichever has more waiting."""

from itertools import pairwise

import pytest

from rota import Limit
from rota.model.job import Keys, Order
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    settle,
    settlement,
    spec_of,
)
from tests.store.keying import fair, keys_of


def started(store: Store, connection: Connection, at_once: int, most: int) -> list[str]:
    """The keys of the first `most` jobs in the order of their start, claimed so many at once."""
    session = open_session(store, connection)
    order: list[str] = []
    while len(order) < most and (jobs := claim(store, connection, session, at_once)):
        order += keys_of(jobs)
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in jobs))
    return order


@pytest.mark.parametrize("at_once", [1, 2, 3, 10, 100])
def test_a_big_one_does_not_starve_a_small_one(
    store: Store, connection: Connection, at_once: int
) -> None:
    """Between two of the small one, which came later, at most a few of the big one start."""
    fair(store, connection, ["big"] * 1000)
    fair(store, connection, ["small"] * 10)
    order = started(store, connection, at_once, 200)
    places = [place for place, key in enumerate(order) if key == "small"]
    assert len(places) == 10
    assert places[0] <= 2
    assert max(after - before for before, after in pairwise(places)) <= 3


@pytest.mark.parametrize("at_once", [1, 3, 7, 50])
def test_equal_shares(store: Store, connection: Connection, at_once: int) -> None:
    """Of the keys that always have jobs, none gets more than another."""
    for key, count in (("a", 300), ("b", 200), ("c", 150)):
        fair(store, connection, [key] * count)
    order = started(store, connection, at_once, 150)
    shares = [order[:150].count(key) for key in "abc"]
    assert max(shares) - min(shares) <= 3


def test_each_key_keeps_its_order(store: Store, connection: Connection) -> None:
    """Jobs of one key start as they were enqueued."""
    jobs = fair(store, connection, ["a", "b"] * 20)
    session = open_session(store, connection)
    got = claim(store, connection, session, 7)
    while found := claim(store, connection, session, 7):
        got += found
    assert sorted(job.id for job in got) == jobs
    for key in "ab":
        mine = [job.id for job in got if keys_of([job]) == [key]]
        assert mine == sorted(mine)


def test_nothing_is_left_unused(store: Store, connection: Connection) -> None:
    """A key that is alone gets everything, and jobs without a key their share."""
    fair(store, connection, ["big"] * 50)
    enqueue(store, connection, 5)
    session = open_session(store, connection)
    got = [job for _ in range(4) for job in claim(store, connection, session, 55)]
    assert len(got) == 55
    assert not any(job.limited for job in got)


def test_a_limit_is_shared_fairly(store: Store, connection: Connection) -> None:
    """Of one limit for all, every key gets a share of the places."""
    spec = spec_of(limit=Limit("smtp", running=3))
    for key, count in (("big", 50), ("small", 5), ("tiny", 2)):
        keys = Keys(limit=["smtp"] * count, fair=[key] * count)
        connection.run(store.enqueue(Order(spec, [f'"{key}"'] * count, keys)))
    session = open_session(store, connection)
    order: list[str] = []
    while held := claim(store, connection, session, 10):
        assert len(held) <= 3
        order += keys_of(held)
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in held))
    assert len(order) == 57
    assert sorted(order[:6]) == ["big", "big", "small", "small", "tiny", "tiny"]
    assert order[:18].count("small") == 5
