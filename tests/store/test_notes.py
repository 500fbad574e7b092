"""What handlers told of their runs: kept with the job as far as it counts, and gone with it."""

import time
from datetime import UTC, datetime

import pytest

from rota.model.job import JobId, JobRecord, LeaseId
from rota.model.notes import LINES, LOG_CHARACTERS, Note, ToldNote, with_notes
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    NOBODY,
    claim,
    close_to,
    in_state,
    open_session,
    record,
    running,
    settle,
    settlement,
    until,
)


def progress(job: JobId, lease: int, number: int, fraction: float, age: float = 0.0) -> Note:
    """A run says how far it is."""
    said = time.monotonic() - age
    return Note(job, LeaseId(lease), 1, False, number, said, fraction, None, f"at {fraction}")


def line(job: JobId, lease: int, number: int, text: str = "") -> Note:
    """A run has written a line."""
    text = text or f"line {number}"
    return Note(job, LeaseId(lease), 1, True, number, time.monotonic(), None, "warning", text)


def told(store: Store, connection: Connection, job: JobId) -> JobRecord:
    """The job with what its handler told."""
    return with_notes(record(store, connection, job), notes(store, connection, job))


def notes(store: Store, connection: Connection, job: JobId) -> list[ToldNote]:
    return connection.run(store.notes([job])).get(job, [])


def test_a_job_that_tells_nothing(store: Store, connection: Connection) -> None:
    """There are no notes of most jobs, and none of jobs that do not exist."""
    built = in_state(store, connection, State.RUNNING)
    assert connection.run(store.notes([built.id, NOBODY])) == {}
    assert connection.run(store.notes([])) == {}


def test_what_is_told_is_known(store: Store, connection: Connection) -> None:
    """The newest progress, all lines in their order, and when they were said."""
    built = in_state(store, connection, State.RUNNING)
    lease = built.job.lease
    connection.run(
        store.note(
            [progress(built.id, lease, 1, 0.25), line(built.id, lease, 1), line(built.id, lease, 2)]
        )
    )
    connection.run(
        store.note([progress(built.id, lease, 7, 1 / 3, age=60.0), line(built.id, lease, 3, "ü\n")])
    )
    found = told(store, connection, built.id)
    assert found.progress is not None
    assert (found.progress.fraction, found.progress.message) == (1 / 3, f"at {1 / 3}")
    assert close_to(found.progress.at, datetime.fromtimestamp(time.time() - 60, UTC))
    assert [(entry.level, entry.message) for entry in found.log] == [
        ("warning", "line 1"), ("warning", "line 2"), ("warning", "ü\n"),
    ]  # fmt: skip
    assert close_to(found.log[0].at, datetime.now(UTC))


def test_what_was_written_twice_is_there_once(store: Store, connection: Connection) -> None:
    """After a lost connection a note is written again, since it may not have been written."""
    built = in_state(store, connection, State.RUNNING)
    said = [progress(built.id, built.job.lease, 1, 0.5), line(built.id, built.job.lease, 1)]
    connection.run(store.note(said))
    connection.run(store.note(said))
    assert len(told(store, connection, built.id).log) == 1


def test_a_run_that_lost_its_lease(store: Store, connection: Connection) -> None:
    """What a worker says late, that was declared dead, does not hide what its successor says."""
    built = in_state(store, connection, State.RUNNING)
    lease = built.job.lease
    connection.run(
        store.note([progress(built.id, lease + 1, 1, 0.1), line(built.id, lease + 1, 1)])
    )
    connection.run(store.note([progress(built.id, lease, 99, 0.9), line(built.id, lease, 99)]))
    found = told(store, connection, built.id)
    assert found.progress is not None
    assert found.progress.fraction == 0.1
    assert [entry.number for entry in found.log if entry.level != "dropped"] == [99, 1]


def test_lines_are_bounded(store: Store, connection: Connection) -> None:
    """The newest lines are there, and what is missing is said."""
    many, long = running(store, connection, 2)[1]
    for start in range(0, 300, 50):
        numbers = range(start + 1, start + 51)
        connection.run(store.note([line(many.id, many.lease, number) for number in numbers]))
        connection.run(
            store.note([line(long.id, long.lease, number, "x" * 1000) for number in numbers])
        )
    found = told(store, connection, many.id).log
    assert found[0].message == "200 lines are not kept"
    assert [entry.number for entry in found[1:]] == list(range(301 - LINES, 301))
    kept = LOG_CHARACTERS // 1000
    assert [entry.number for entry in told(store, connection, long.id).log[1:]] == list(
        range(301 - kept, 301)
    )


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD, Move.CANCEL, Move.RETRY])
def test_what_was_told_stays_with_the_job(store: Store, connection: Connection, move: Move) -> None:
    """A job that has finished, or waits again, keeps its notes."""
    session, [job] = running(store, connection)
    connection.run(store.note([progress(job.id, job.lease, 1, 0.5), line(job.id, job.lease, 1)]))
    assert settle(store, connection, session, settlement(job, move)) == []
    for _ in range(3):
        connection.run(store.tidy())
    found = told(store, connection, job.id)
    assert found.progress is not None
    assert len(found.log) == 1


def test_a_job_that_is_retried_by_hand(store: Store, connection: Connection) -> None:
    """It keeps what its earlier attempts told, and adds to it."""
    session, [job] = running(store, connection)
    connection.run(store.note([progress(job.id, job.lease, 1, 0.5), line(job.id, job.lease, 1)]))
    settle(store, connection, session, settlement(job, Move.DISCARD))
    connection.run(store.retry([job.id]))
    [again] = claim(store, connection, open_session(store, connection))
    connection.run(store.note([line(again.id, again.lease, 1, "again")]))
    assert [entry.message for entry in told(store, connection, job.id).log] == ["line 1", "again"]


def test_deleting_forgets(store: Store, connection: Connection) -> None:
    """With a job all goes that is known of it."""
    session, jobs = running(store, connection, 2)
    for job in jobs:
        connection.run(
            store.note([progress(job.id, job.lease, 1, 0.5), line(job.id, job.lease, 1)])
        )
        settle(store, connection, session, settlement(job, Move.COMPLETE))
    connection.run(store.delete([jobs[0].id]))
    assert notes(store, connection, jobs[0].id) == []
    assert len(notes(store, connection, jobs[1].id)) == 2


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD])
def test_retention(store: Store, connection: Connection, move: Move) -> None:
    """What was told of a job goes when its retention is over."""
    session, [short, long] = running(store, connection, 2)
    for job, keep in ((short, 0.001), (long, 3600.0)):
        connection.run(
            store.note([progress(job.id, job.lease, 1, 0.5), line(job.id, job.lease, 1)])
        )
        settle(store, connection, session, settlement(job, move, keep=keep))

    def pruned() -> bool | None:
        connection.run(store.tidy())
        # What is over is out of sight already; in PostgreSQL notes go with their segment, see
        # there.
        gone = store.name == "postgres" or not notes(store, connection, short.id)
        return True if gone and not connection.run(store.get([short.id])) else None

    until(pruned)
    assert len(notes(store, connection, long.id)) == 2


def test_notes_of_nobody(store: Store, connection: Connection) -> None:
    """Notes of a job that was deleted meanwhile are no error, and are not kept."""
    connection.run(store.note([progress(NOBODY, 1, 1, 0.5), line(NOBODY, 1, 1)]))
    assert connection.run(store.get([NOBODY])) == []
