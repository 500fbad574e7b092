"""How long finished jobs stay, and housekeeping."""

from typing import Any

import pytest

from rota.model.job import JobFilter, JobId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.postgres.connection import PostgresConnection
from rota.store.protocol import Store
from rota.store.sqlite.connection import SqliteConnection
from tests.store.factories import (
    enqueue,
    one_of_each,
    open_session,
    rescued,
    retry_discarded,
    running,
    settle,
    settlement,
    states,
    until,
)
from tests.store.test_counters import counted, told


def gone(store: Store, connection: Connection, jobs: list[JobId]) -> None:
    """Wait until nothing is found of these jobs."""
    until(lambda: True if not connection.run(store.get(jobs)) else None)


def test_tidy_with_nothing_to_do(store: Store, connection: Connection) -> None:
    """Housekeeping in an empty house does no harm, and says what it did in sentences."""
    for _ in range(3):
        assert all(isinstance(line, str) for line in connection.run(store.tidy()))


def test_tidy_keeps_what_is_in_use(store: Store, connection: Connection) -> None:
    """Housekeeping changes no job whose retention is not over."""
    built = one_of_each(store, connection)
    jobs = list(built.values())
    before = connection.run(store.get(jobs))
    for _ in range(10):
        connection.run(store.tidy())
    assert connection.run(store.get(jobs)) == before
    assert states(store, connection, jobs) == list(built)


def test_finished_jobs_go_when_their_time_is_over(store: Store, connection: Connection) -> None:
    """A job past its retention is not found any more, by id or in a list."""
    session, jobs = running(store, connection, 6)
    moves = [Move.COMPLETE, Move.CANCEL, Move.DISCARD]
    keeps = [0.01, 0.01, None]
    batch = [
        settlement(job, moves[number % 3], keep=keeps[number % 3])
        for number, job in enumerate(jobs)
    ]
    settle(store, connection, session, *batch)
    short = [job.id for number, job in enumerate(jobs) if number % 3 < 2]
    discarded = [job.id for number, job in enumerate(jobs) if number % 3 == 2]
    gone(store, connection, short)
    connection.run(store.tidy())
    assert states(store, connection, discarded) == [State.DISCARDED] * 2
    assert connection.run(store.list_jobs(JobFilter(state=State.COMPLETED))) == []
    assert connection.run(store.list_jobs(JobFilter(state=State.CANCELLED))) == []
    listed = connection.run(store.list_jobs(JobFilter()))
    assert sorted(job.id for job in listed) == discarded
    assert connection.run(store.retry(short)) == []
    assert connection.run(store.cancel(short)) == {}


def test_tidy_beside_the_work(store: Store, connection: Connection, other: Connection) -> None:
    """Housekeeping on one connection loses nothing that others work on."""
    session = open_session(store, connection)
    done: list[JobId] = []
    for _ in range(5):
        jobs = enqueue(store, connection, 20)
        other.run(store.tidy())
        claimed = connection.run(store.claim(session, ["default"], 20))
        other.run(store.tidy())
        assert [job.id for job in claimed] == jobs
        batch = [settlement(job, Move.COMPLETE) for job in claimed]
        assert settle(store, connection, session, *batch) == []
        other.run(store.tidy())
        done += jobs
    assert states(store, connection, done) == [State.COMPLETED] * 100


def test_discarded_jobs_with_a_retention(store: Store, connection: Connection) -> None:
    """They go like the others when their time is over: from sight, from the counts, from the disk."""
    session, jobs = running(store, connection, 4)
    keeps = [0.01, 3600.0, None, 0.0]
    batch = [
        settlement(job, Move.DISCARD, keep=keep) for job, keep in zip(jobs, keeps, strict=True)
    ]
    assert settle(store, connection, session, *batch) == []
    gone(store, connection, [jobs[0].id, jobs[3].id])
    kept = [jobs[1].id, jobs[2].id]
    for _ in range(2):
        [queue] = connection.run(store.queues())
        assert dict(queue.counts) == {State.DISCARDED: 2}
        assert states(store, connection, kept) == [State.DISCARDED] * 2
        listed = connection.run(store.list_jobs(JobFilter(state=State.DISCARDED)))
        assert sorted(job.id for job in listed) == kept
        connection.run(store.squeeze())
        connection.run(store.tidy())
    assert connection.run(store.retry([jobs[0].id])) == []
    assert retry_discarded(store, connection) == kept
    [queue] = connection.run(store.queues())
    assert dict(queue.counts) == {State.AVAILABLE: 2}


def test_a_job_that_comes_back_forgets_its_retention(store: Store, connection: Connection) -> None:
    """Retried and discarded again, it stays as long as is said then."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.DISCARD, keep=3600.0))
    assert retry_discarded(store, connection, "default", None) == [job.id]
    [again] = connection.run(store.claim(session, ["default"], 1))
    settle(store, connection, session, settlement(again, Move.DISCARD))
    connection.run(store.tidy())
    assert states(store, connection, [job.id]) == [State.DISCARDED]


def test_discarded_by_a_rescue(store: Store, connection: Connection) -> None:
    """Jobs whose worker died stay as long as is said of their queue."""
    jobs = []
    for queue in ("default", "mail"):
        session = open_session(store, connection, timeout=0.001)
        jobs += enqueue(store, connection, max_attempts=1, queue=queue)
        connection.run(store.claim(session, [queue], 9))
        rescue = rescued(store, connection, session, keep={"mail": 0.01, "paint": 5.0})
        assert list(rescue.discarded) == jobs[-1:]
    gone(store, connection, jobs[1:])
    assert states(store, connection, jobs[:1]) == [State.DISCARDED]
    [default, mail] = connection.run(store.queues())
    assert dict(default.counts) == {State.DISCARDED: 1}
    assert not any(mail.counts.values())


@pytest.mark.parametrize("waits", [True, False])
def test_cancelled_before_it_runs(store: Store, connection: Connection, *, waits: bool) -> None:
    """It stays as long as is set for its queue, else as the code says, else a day; or a minute."""
    later: dict[str, Any] = {"delay": 600.0} if waits else {}
    said = {"mail": 3600.0, "paint": 7200.0, "none": 0.0, "default": None}
    connection.run(store.set_queue("mail", {"cancelled": 1800.0}))
    connection.run(store.set_queue("paint", {"discarded": 1.0}))
    jobs = [job for queue in said for job in enqueue(store, connection, 2, queue=queue, **later)]
    keep = {queue: seconds for queue, seconds in said.items() if seconds is not None}
    found = connection.run(store.cancel(jobs, keep))
    assert set(found.values()) == {State.CANCELLED}
    assert told(store, connection) == counted(store, connection)
    expected = [1800.0] * 2 + [7200.0] * 2 + [60.0] * 2 + [86_400.0] * 2
    for seconds, wanted in zip(kept(connection, jobs), expected, strict=True):
        assert wanted - 5 <= seconds <= wanted * 33 / 32 + 5
    # Off the store's default path, the same without a word from the code.
    [job] = enqueue(store, connection, queue="mail", **later)
    connection.run(store.cancel([job]))
    [seconds] = kept(connection, [job])
    assert 1790 < seconds < 1900


def kept(connection: Connection, jobs: list[JobId]) -> list[float]:
    """For how many seconds more finished jobs stay."""
    if isinstance(connection, PostgresConnection):
        statement = (
            "SELECT extract(epoch FROM keep_until - now())::float8 FROM rota.finished "
            "WHERE id = ANY (%s) ORDER BY id"
        )
        return [row[0] for row in connection.raw().execute(statement, (jobs,)).fetchall()]
    assert isinstance(connection, SqliteConnection)
    marks = ", ".join("?" * len(jobs))
    statement = (
        "SELECT keep_until - (julianday('now') - 2440587.5) * 86400.0 FROM rota_job "
        f"WHERE id IN ({marks}) ORDER BY id"
    )
    return [row[0] for row in connection.database().execute(statement, jobs).fetchall()]
