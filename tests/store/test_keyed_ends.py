"""Jobs with limits and fair shares where workers are lost, and where transactions are rolled back."""

from collections import Counter
from collections.abc import Sequence

import pytest

from rota import Limit
from rota.model.job import Keys, Order, SessionId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    open_session,
    rescued,
    run_inside,
    settle,
    settlement,
    spec_of,
    states,
)
from tests.store.keying import fair, keys_of, limited

HOURLY = Limit(key="{key}", per_hour=3)

LOST = pytest.mark.parametrize("how", ["rescue", "close", "release"])
"""How a worker loses what it holds: by silence, by its end, or because it does not know of it."""


def lose(store: Store, connection: Connection, session: SessionId, how: str) -> None:
    """Take everything from a worker."""
    if how == "rescue":
        rescued(store, connection, session)
    elif how == "close":
        connection.run(store.close_session(session))
    else:
        connection.run(store.release(session, []))


def rolled_back(store: Store, keys: Sequence[str], limit: Limit | None = None) -> None:
    """Enqueue a job for each key, with a limit or else with fair shares, and roll back."""
    named = Keys(fair=keys) if limit is None else Keys(limit=keys)
    spec = spec_of(limit=limit)
    transaction = store.transaction()
    run_inside(store, transaction, store.enqueue(Order(spec, ["{}"] * len(keys), named)))
    transaction.rollback()


@LOST
def test_the_starts_of_a_lost_worker_count(store: Store, connection: Connection, how: str) -> None:
    """What it got has started, as far as a rate goes: others start what is left of it, no more."""
    jobs = limited(store, connection, "aaaaa", HOURLY)
    lost = open_session(store, connection, timeout=0.02)
    assert len(claim(store, connection, lost, 2)) == 2
    lose(store, connection, lost, how)
    session = open_session(store, connection)
    [held] = claim(store, connection, session)
    assert claim(store, connection, session) == []
    settle(store, connection, session, settlement(held, Move.COMPLETE))
    assert claim(store, connection, session) == []
    found = Counter(states(store, connection, jobs))
    assert found == {State.AVAILABLE: 4, State.COMPLETED: 1}


def test_a_rolled_back_enqueue_takes_nothing_of_a_rate(
    store: Store, connection: Connection
) -> None:
    """All that may start is left to the jobs that are there, of keys old and new."""
    limited(store, connection, "a", HOURLY)
    rolled_back(store, ["a"] * 5 + ["new"] * 5, HOURLY)
    limited(store, connection, ["a", "new"] * 4, HOURLY)
    session = open_session(store, connection)
    assert Counter(keys_of(claim(store, connection, session))) == {"a": 3, "new": 3}
    assert claim(store, connection, session) == []


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.RETRY, Move.AGAIN])
def test_a_rolled_back_settlement_frees_no_place(
    store: Store, connection: Connection, move: Move
) -> None:
    """The job has its place until a settlement is committed; then there is one, not two."""
    limited(store, connection, "aaa", Limit(key="{key}", running=1))
    session = open_session(store, connection)
    [held] = claim(store, connection, session)
    ending = settlement(held, move, delay=600.0)
    transaction = store.transaction()
    assert run_inside(store, transaction, store.settle(session, [ending])) == []
    transaction.rollback()
    assert claim(store, connection, session) == []
    assert settle(store, connection, session, ending) == []
    assert len(claim(store, connection, session)) == 1
    assert claim(store, connection, session) == []


@LOST
def test_a_lost_workers_jobs_keep_their_shares(
    store: Store, connection: Connection, how: str
) -> None:
    """They come back to the lanes of their keys: all are there, and the small one is not starved."""
    fair(store, connection, ["big"] * 40)
    fair(store, connection, ["small"] * 6)
    lost = open_session(store, connection, timeout=0.02)
    assert Counter(keys_of(claim(store, connection, lost, 8))) == {"big": 4, "small": 4}
    lose(store, connection, lost, how)
    session = open_session(store, connection)
    order: list[str] = []
    while jobs := claim(store, connection, session, 4):
        order += keys_of(jobs)
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in jobs))
    assert Counter(order) == {"big": 40, "small": 6}
    assert order[:12].count("small") == 6


def test_a_rolled_back_enqueue_takes_no_share(store: Store, connection: Connection) -> None:
    """A key whose jobs were rolled back has no turn, and takes none from the others."""
    fair(store, connection, "a" * 6)
    rolled_back(store, ["huge"] * 300 + ["a"] * 3)
    fair(store, connection, "b" * 6)
    session = open_session(store, connection)
    for _ in range(6):
        jobs = claim(store, connection, session, 2)
        assert sorted(keys_of(jobs)) == ["a", "b"]
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in jobs))
    assert claim(store, connection, session) == []
