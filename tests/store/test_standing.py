"""Where a job stands that does not run."""

import pytest

from rota.model.job import JobId, JobSpec, Keys, Order, SessionInfo
from rota.model.limit import Limit
from rota.model.limit_record import LimitRecord
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import NOBODY, claim, enqueue, in_state, open_session


def limited(
    store: Store, connection: Connection, count: int, limit: Limit, key: str
) -> list[JobId]:
    """Jobs with a limit."""
    order = Order(JobSpec(task="shop.send", limit=limit), ["{}"] * count, Keys(limit=[key] * count))
    return list(connection.run(store.enqueue(order)))


def test_those_before_it(store: Store, connection: Connection) -> None:
    """The jobs of its queue and priority that start before it; claimed ones do not."""
    jobs = enqueue(store, connection, 5)
    enqueue(store, connection, 5, queue="other")
    enqueue(store, connection, 5, priority=-1)
    for ahead, job in enumerate(jobs):
        standing = connection.run(store.standing(job))
        assert standing is not None
        assert (standing.ahead, standing.of_key, standing.limit) == (ahead, False, None)
    session = open_session(store, connection)
    assert len(claim(store, connection, session, 7)) == 7
    standing = connection.run(store.standing(jobs[-1]))
    assert standing is not None
    assert standing.ahead == 2


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE])
def test_one_that_waits_for_its_time(store: Store, connection: Connection, state: State) -> None:
    """It stands nowhere yet; who knows its task is known."""
    job = in_state(store, connection, state)
    knowing = connection.run(
        store.open_session(SessionInfo("h", 1, ("default",), 60.0, ("shop.send",)))
    )
    standing = connection.run(store.standing(job.id))
    assert standing is not None
    assert standing.ahead == 0
    assert knowing in standing.knowing


@pytest.mark.parametrize("state", [State.COMPLETED, State.DISCARDED, State.CANCELLED])
def test_none_that_has_ended(store: Store, connection: Connection, state: State) -> None:
    """On SQLite an ended job stands nowhere; in PostgreSQL's log it remains, before nothing."""
    standing = connection.run(store.standing(in_state(store, connection, state).id))
    assert standing is None or standing.ahead == 0
    assert connection.run(store.standing(NOBODY)) is None


def test_who_knows_its_task(store: Store, connection: Connection) -> None:
    """Sessions that name it, and those that do not say what they know."""
    [job] = enqueue(store, connection)
    known = [
        connection.run(store.open_session(SessionInfo("h", 1, ("default",), 60.0, tasks)))
        for tasks in (("shop.send", "x"), ("x",), None)
    ]
    standing = connection.run(store.standing(job))
    assert standing is not None
    assert standing.knowing == (known[0], known[2])


def test_its_limit(store: Store, connection: Connection) -> None:
    """What the limit allows, what is taken of it, and by which jobs."""
    jobs = limited(store, connection, 4, Limit(key="k", running=2), "tenant:1")
    limited(store, connection, 4, Limit(key="k", running=2), "tenant:2")
    session = open_session(store, connection)
    held = [job.id for job in claim(store, connection, session, 100)]
    standing = connection.run(store.standing(jobs[-1]))
    assert standing is not None
    assert standing.of_key
    assert standing.ahead == 1
    assert standing.limit == LimitRecord("tenant:1", 2, 2, None, None, 0, waiting=True)
    assert standing.limit.full
    assert list(standing.holders) == sorted(set(jobs) & set(held))
    facts = connection.run(store.limits(10))
    assert [(one.key, one.held) for one in facts] == [("tenant:1", 2), ("tenant:2", 2)]
    assert connection.run(store.limits(10, "tenant:1")) == facts[1:]
    assert connection.run(store.limits(1)) == facts[:1]


def test_its_rate(store: Store, connection: Connection) -> None:
    """How many have started within the limit's window."""
    jobs = limited(store, connection, 3, Limit(key="k", per_hour=2), "smtp")
    claim(store, connection, open_session(store, connection), 100)
    standing = connection.run(store.standing(jobs[-1]))
    assert standing is not None
    assert standing.limit == LimitRecord("smtp", None, 2, 2, 3600.0, 2, waiting=True)
    assert standing.limit.full


def test_the_anonymous_one() -> None:
    """Without the key of its limit, which is made of args."""
    from rota.store.standing import Standing

    limit = LimitRecord("card:4711", 1, 1, None, None, 0, waiting=True)
    assert "4711" not in repr(Standing(0, of_key=True, limit=limit).anonymous())
    assert Standing(1, of_key=True).anonymous() == Standing(1, of_key=True)
