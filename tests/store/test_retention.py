"""How long finished jobs stay, and housekeeping."""

from rota.job import JobFilter, JobId
from rota.states import Move, State
from rota.store.protocol import Connection, Store
from tests.store.factories import (
    enqueue,
    one_of_each,
    open_session,
    running,
    settle,
    settlement,
    states,
    until,
)


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
    batch = [settlement(job, moves[number % 3], keep=0.01) for number, job in enumerate(jobs)]
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
