"""Headers travel with a job, whatever way it takes."""

import pytest

from rota import Limit, Unique
from rota.model.headers import decoded
from rota.model.job import ClaimedJob, JobFilter, JobId, Keys, Order
from rota.model.settlement import passed_on
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    run_inside,
    settle,
    settlement,
    spec_of,
)
from tests.store.keying import fair, limited

HEADERS = '{"trace":"a\\\\b\\t\\"c\\""}'
MEANT = {"trace": 'a\\b\t"c"'}


def told(jobs: list[ClaimedJob]) -> list[dict[str, str]]:
    """The headers that handlers would see."""
    return [decoded(job.headers) for job in jobs]


@pytest.mark.parametrize("count", [1, 3, 300])
@pytest.mark.parametrize("delay", [None, -3600.0])
def test_enqueued(store: Store, connection: Connection, count: int, delay: float | None) -> None:
    """One job or many, at once or later: the worker gets them, and so does everybody who looks."""
    for _ in range(2):  # the second time a producer knows where to write
        jobs = enqueue(store, connection, count, headers=HEADERS, delay=delay)
        connection.run(store.stage(1000))
        claimed = claim(store, connection, open_session(store, connection), 1000)
        assert told(claimed) == [MEANT] * count
        assert record(store, connection, jobs[-1]).headers == MEANT


def test_without(store: Store, connection: Connection) -> None:
    """Jobs without headers have none."""
    jobs = enqueue(store, connection, 2)
    assert [job.headers for job in connection.run(store.get(jobs))] == [{}, {}]
    assert told(claim(store, connection, open_session(store, connection))) == [{}, {}]


def test_in_a_callers_transaction(store: Store, connection: Connection) -> None:
    """Many jobs are inserted there, and not copied."""
    with_many = Order(spec_of(headers=HEADERS), ["1"] * 300)
    transaction = store.transaction()
    run_inside(store, transaction, store.enqueue(with_many))
    transaction.commit()
    claimed = claim(store, connection, open_session(store, connection), 1000)
    assert told(claimed) == [MEANT] * 300


@pytest.mark.parametrize("count", [1, 300])
def test_with_a_limit_or_a_share(store: Store, connection: Connection, count: int) -> None:
    """Jobs of key lanes have them."""
    limit = Limit(key="{key}", running=1000)
    jobs = limited(store, connection, ["a"] * count, limit, headers=HEADERS)
    jobs += fair(store, connection, ["a"] * count, headers=HEADERS)
    claimed: list[ClaimedJob] = []
    session = open_session(store, connection)
    while len(claimed) < len(jobs):
        claimed += claim(store, connection, session, 1000)
    assert told(claimed) == [MEANT] * len(jobs)


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("delay", [None, -3600.0])
def test_unique(store: Store, connection: Connection, count: int, delay: float | None) -> None:
    """A unique job has those of its first enqueue, and new ones where it is replaced."""
    keys = Keys(unique=[f"key {number}" for number in range(count)])

    def placed(headers: str | None, on_conflict: str) -> list[JobId]:
        rule = Unique(key="k", on_conflict=on_conflict)
        spec = spec_of(unique=rule, headers=headers, delay=delay)
        stored = connection.run(store.enqueue(Order(spec, ["1"] * count, keys)))
        return [one.job for one in stored.placed]

    jobs = placed(HEADERS, "skip")
    assert placed('{"trace":"skipped"}', "skip") == jobs
    assert record(store, connection, jobs[0]).headers == MEANT
    assert placed('{"trace":"new"}', "replace") == jobs
    assert record(store, connection, jobs[-1]).headers == {"trace": "new"}
    connection.run(store.stage(1000))
    claimed = claim(store, connection, open_session(store, connection), 1000)
    assert told(claimed) == [{"trace": "new"}] * count


def test_next_attempts(store: Store, connection: Connection) -> None:
    """After a retry, a release, a round and being passed on they are still there."""
    session = open_session(store, connection)
    [job] = enqueue(store, connection, headers=HEADERS)
    for _ in range(2):
        [claimed] = claim(store, connection, session)
        settle(store, connection, session, settlement(claimed, Move.RETRY, delay=0.0))
        connection.run(store.stage(10))
    [claimed] = claim(store, connection, session)
    settle(store, connection, session, settlement(claimed, Move.RELEASE))
    [claimed] = claim(store, connection, session)
    settle(store, connection, session, passed_on(claimed))
    [claimed] = claim(store, connection, session)
    assert told([claimed]) == [MEANT]
    settle(store, connection, session, settlement(claimed, Move.AGAIN, delay=0.0))
    connection.run(store.stage(10))
    [claimed] = claim(store, connection, session)
    assert told([claimed]) == [MEANT]
    settle(store, connection, session, settlement(claimed, Move.COMPLETE))
    assert record(store, connection, job).headers == MEANT
    assert connection.run(store.retry([job])) == [job]
    assert told(claim(store, connection, session)) == [MEANT]


def test_in_lists(store: Store, connection: Connection) -> None:
    """Each list has them."""
    session = open_session(store, connection)
    enqueue(store, connection, headers=HEADERS, delay=600.0)
    enqueue(store, connection, 2, headers=HEADERS)
    [running] = claim(store, connection, session, 1)
    enqueue(store, connection, headers=HEADERS, queue="other")
    [done] = claim(store, connection, session, 1, ("other",))
    settle(store, connection, session, settlement(done, Move.COMPLETE))
    found = connection.run(store.list_jobs(JobFilter()))
    assert [job.headers for job in found] == [MEANT] * 4
    assert running.id in {job.id for job in found}
