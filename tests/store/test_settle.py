"""Writing how runs ended: each move, the fence, and requests to cancel."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Completions, Settlement
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    KEEP,
    NOBODY,
    claim,
    close_to,
    enqueue,
    error_json,
    in_state,
    open_session,
    record,
    rescued,
    running,
    settle,
    settlement,
    states,
)

SETTLING = [
    Move.COMPLETE,
    Move.RETRY,
    Move.SNOOZE,
    Move.DISCARD,
    Move.CANCEL,
    Move.RELEASE,
]


def test_complete_keeps_the_result(store: Store, connection: Connection) -> None:
    """A completed job can be looked at, with what its handler returned."""
    session, [job] = running(store, connection)
    result = json.dumps({"total": 12.5, "who": 'Zoë "Z"'})
    ended = settlement(job, Move.COMPLETE, result=result)
    assert settle(store, connection, session, ended) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt, found.worker) == (State.COMPLETED, 1, None)
    assert found.result is not None
    assert json.loads(found.result) == json.loads(result)
    assert close_to(found.finished_at, datetime.now(UTC))
    assert found.args == job.args


def test_a_result_may_be_missing(store: Store, connection: Connection) -> None:
    """No result and a result that is null are two things."""
    session, [one, two] = running(store, connection, 2)
    settle(
        store,
        connection,
        session,
        settlement(one, Move.COMPLETE),
        settlement(two, Move.COMPLETE, result="null"),
    )
    assert record(store, connection, one.id).result is None
    assert record(store, connection, two.id).result == "null"


def test_many_are_completed_at_once(store: Store, connection: Connection) -> None:
    """One that was tried before is kept as it was last, and one in their midst goes on running."""
    session, jobs = running(store, connection, 200)
    again, stays = jobs[40], jobs[120]
    settle(store, connection, session, settlement(again, Move.RETRY, delay=0.0))
    connection.run(store.stage(10))
    [retried] = claim(store, connection, session)
    ended = [retried, *(job for job in jobs if job not in (again, stays))]
    done = [settlement(job, Move.COMPLETE) for job in ended]
    assert settle(store, connection, session, *done) == []
    found = connection.run(store.get([job.id for job in jobs]))
    assert [shown.id for shown in found if shown.state is not State.COMPLETED] == [stays.id]
    assert [shown.attempt for shown in found] == [
        2 if shown.id == again.id else 1 for shown in found
    ]
    assert record(store, connection, stays.id).state is State.RUNNING
    assert [shown.args for shown in found] == [job.args for job in jobs]


@pytest.mark.parametrize("keep", [0.0, KEEP])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_completions(store: Store, connection: Connection, count: int, keep: float) -> None:
    """Jobs that have completed alike are told of at once; those of a lease that is gone are refused."""
    session, jobs = running(store, connection, 5)
    ids = [job.id for job in jobs]
    alike = Completions(jobs[0].lease, keep, ids[:count])
    gone = Completions(LeaseId(jobs[0].lease + 1000), keep, ids[:2])
    assert sorted(connection.run(store.settle(session, [], [gone]))) == ids[:2]
    assert connection.run(store.settle(session, (), [alike])) == []
    assert sorted(connection.run(store.settle(session, [], [alike]))) == ids[:count]
    kept = [State.COMPLETED] * count if keep else []
    left = [job for job in ids if keep or job not in alike.jobs]
    assert states(store, connection, left) == kept + [State.RUNNING] * (5 - count)


def test_completions_among_settlements(store: Store, connection: Connection) -> None:
    """Of one lease: each is written as it says, and once."""
    session, jobs = running(store, connection, 4)
    ids = [job.id for job in jobs]
    alike = [Completions(jobs[0].lease, KEEP, ids[:1]), Completions(jobs[0].lease, 0.0, ids[1:2])]
    others = [settlement(jobs[2], Move.SNOOZE), settlement(jobs[3], Move.COMPLETE, result="1")]
    assert connection.run(store.settle(session, others, alike)) == []
    assert states(store, connection, [ids[0], *ids[2:]]) == [
        State.COMPLETED,
        State.SCHEDULED,
        State.COMPLETED,
    ]
    assert record(store, connection, ids[3]).result == "1"
    both = connection.run(store.settle(session, others, alike))
    assert sorted(both) == ids


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.CANCEL])
def test_nothing_is_kept_of_a_job_with_no_retention(
    store: Store, connection: Connection, move: Move
) -> None:
    """A job that shall not be kept leaves no row."""
    session, [gone, stays] = running(store, connection, 2)
    assert settle(store, connection, session, settlement(gone, move, keep=0.0)) == []
    assert connection.run(store.get([gone.id, stays.id])) == [record(store, connection, stays.id)]
    assert connection.run(store.retry([gone.id])) == []


def test_retry_waits_and_notes_the_error(store: Store, connection: Connection) -> None:
    """A failed attempt is spent, its error is kept, and the job waits for its delay."""
    session, [job] = running(store, connection)
    error = error_json(1, "shop.Trouble", "it\nbroke “badly”", "Traceback …\n  line 1")
    ended = settlement(job, Move.RETRY, delay=600.0, error=error)
    assert settle(store, connection, session, ended) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt) == (State.RETRYABLE, 1)
    assert close_to(found.scheduled_at, datetime.now(UTC) + timedelta(seconds=600))
    [kept] = found.errors
    assert (kept.attempt, kept.exception) == (1, "shop.Trouble")
    assert (kept.message, kept.traceback) == ("it\nbroke “badly”", "Traceback …\n  line 1")
    assert close_to(kept.at, datetime.now(UTC))


def test_errors_add_up(store: Store, connection: Connection) -> None:
    """The errors of all attempts are kept in their order, up to the one that ended the job."""
    session, [job] = running(store, connection)
    for attempt in (1, 2, 3):
        assert job.attempt == attempt
        move = Move.RETRY if attempt < 3 else Move.DISCARD
        assert settle(store, connection, session, settlement(job, move)) == []
        if attempt < 3:
            assert connection.run(store.stage(10)).staged == 1
            [job] = claim(store, connection, session)
    found = record(store, connection, job.id)
    assert (found.state, found.attempt) == (State.DISCARDED, 3)
    assert [error.attempt for error in found.errors] == [1, 2, 3]
    assert [error.message for error in found.errors] == ["no luck 1", "no luck 2", "no luck 3"]


def test_snooze_spends_no_attempt(store: Store, connection: Connection) -> None:
    """A snoozed job is scheduled, and its next run has the same number."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, Move.SNOOZE, delay=600.0)) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt, found.errors) == (State.SCHEDULED, 0, ())
    assert close_to(found.scheduled_at, datetime.now(UTC) + timedelta(seconds=600))


def test_a_snoozed_job_runs_again(store: Store, connection: Connection) -> None:
    """After its time has come a snoozed job is claimed with the same attempt."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.SNOOZE))
    connection.run(store.stage(10))
    [again] = claim(store, connection, session)
    assert (again.id, again.attempt) == (job.id, 1)


def test_discard_is_for_good(store: Store, connection: Connection) -> None:
    """A discarded job stays, with its error, and is not claimed."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, Move.DISCARD)) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt, found.result) == (State.DISCARDED, 1, None)
    assert [error.message for error in found.errors] == ["no luck 1"]
    assert close_to(found.finished_at, datetime.now(UTC))
    assert claim(store, connection, session) == []


def test_cancel_ends_the_job(store: Store, connection: Connection) -> None:
    """A job that stopped on request is cancelled."""
    session, [job] = running(store, connection)
    connection.run(store.cancel([job.id]))
    assert settle(store, connection, session, settlement(job, Move.CANCEL)) == []
    found = record(store, connection, job.id)
    assert (found.state, found.result) == (State.CANCELLED, None)
    assert close_to(found.finished_at, datetime.now(UTC))


def test_release_gives_a_job_back(store: Store, connection: Connection) -> None:
    """A released job is available to others at once, and no attempt was spent."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, Move.RELEASE)) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt, found.scheduled_at) == (State.AVAILABLE, 0, None)
    another = open_session(store, connection)
    assert [job.attempt for job in claim(store, connection, another)] == [1]


def test_release_for_later(store: Store, connection: Connection) -> None:
    """A job released with a delay is scheduled."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, Move.RELEASE, delay=600.0)) == []
    found = record(store, connection, job.id)
    assert (found.state, found.attempt) == (State.SCHEDULED, 0)
    assert close_to(found.scheduled_at, datetime.now(UTC) + timedelta(seconds=600))


def test_a_batch_of_all_moves(store: Store, connection: Connection) -> None:
    """One call writes settlements of every kind, each to its own job."""
    session, jobs = running(store, connection, len(SETTLING))
    batch = [settlement(job, move, delay=9.0) for job, move in zip(jobs, SETTLING, strict=True)]
    assert settle(store, connection, session, *batch) == []
    assert states(store, connection, [job.id for job in jobs]) == [
        State.COMPLETED,
        State.RETRYABLE,
        State.SCHEDULED,
        State.DISCARDED,
        State.CANCELLED,
        State.SCHEDULED,
    ]


def test_a_large_batch(store: Store, connection: Connection) -> None:
    """Thousands of jobs are settled at once, each with its own result."""
    session, jobs = running(store, connection, 3000)
    batch = [settlement(job, Move.COMPLETE, result=str(job.id)) for job in jobs]
    assert settle(store, connection, session, *batch) == []
    found = connection.run(store.get([job.id for job in jobs]))
    assert [job.result for job in found] == [str(job.id) for job in jobs]


def test_an_empty_batch(store: Store, connection: Connection) -> None:
    """Nothing to settle is nothing refused."""
    assert settle(store, connection, open_session(store, connection)) == []


# The fence ------------------------------------------------------------------------------------


def test_twice_in_one_batch(store: Store, connection: Connection) -> None:
    """Of two settlements of one run the second is refused, also where they come together."""
    session, [job] = running(store, connection)
    one = settlement(job, Move.COMPLETE)
    assert settle(store, connection, session, one, one) == [job.id]
    assert states(store, connection, [job.id]) == [State.COMPLETED]


@pytest.mark.parametrize("move", SETTLING)
def test_a_settlement_counts_once(store: Store, connection: Connection, move: Move) -> None:
    """A second settlement of a job is refused, and nothing changes."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, move)) == []
    before = connection.run(store.get([job.id]))
    again = settlement(job, Move.DISCARD if move is Move.COMPLETE else Move.COMPLETE)
    assert settle(store, connection, session, again) == [job.id]
    assert connection.run(store.get([job.id])) == before


@pytest.mark.table
@pytest.mark.parametrize("move", SETTLING)
@pytest.mark.parametrize("wrong", ["lease", "session", "ended session", "unknown session", "job"])
def test_the_lease_must_be_held(
    store: Store, connection: Connection, move: Move, wrong: str
) -> None:
    """A settlement that does not name the job, its lease and its session writes nothing."""
    session, [job] = running(store, connection)
    other = open_session(store, connection)
    ended = settlement(job, move)
    match wrong:
        case "lease":
            ended = ended._replace(lease=LeaseId(job.lease + 1000))
        case "session":
            session = other
        case "ended session":
            connection.run(store.close_session(other))
            session = other
        case "unknown session":
            session = SessionId(session + 1000)
        case _:
            ended = ended._replace(job=NOBODY)
    before = record(store, connection, job.id)
    assert settle(store, connection, session, ended) == [ended.job]
    assert record(store, connection, job.id) == before


@pytest.mark.parametrize("move", SETTLING)
def test_another_workers_lease(store: Store, connection: Connection, move: Move) -> None:
    """Two workers that mix up their leases settle nothing."""
    one, [first] = running(store, connection)
    _, [second] = running(store, connection)
    swapped = [
        settlement(first, move)._replace(lease=second.lease),
        settlement(second, move)._replace(lease=first.lease),
    ]
    assert sorted(settle(store, connection, one, *swapped)) == [first.id, second.id]
    assert states(store, connection, [first.id, second.id]) == [State.RUNNING] * 2


@pytest.mark.parametrize("move", SETTLING)
def test_an_old_lease_of_the_same_worker(store: Store, connection: Connection, move: Move) -> None:
    """A job that came back to the same session is not settled by its earlier lease."""
    session, [old] = running(store, connection)
    settle(store, connection, session, settlement(old, Move.RELEASE))
    [new] = claim(store, connection, session)
    assert settle(store, connection, session, settlement(old, move)) == [old.id]
    assert states(store, connection, [new.id]) == [State.RUNNING]
    assert settle(store, connection, session, settlement(new, move)) == []


@pytest.mark.parametrize("move", SETTLING)
def test_a_rescued_worker_cannot_write(
    store: Store, connection: Connection, other: Connection, move: Move
) -> None:
    """A worker that was taken for dead is refused, before and after another worker has the job."""
    session = open_session(store, connection, timeout=0.02)
    [job] = enqueue(store, connection)
    [lost] = claim(store, connection, session)
    assert rescued(store, other, session).available == (job,)
    assert settle(store, connection, session, settlement(lost, move)) == [job]
    successor = open_session(store, other)
    [taken] = claim(store, other, successor)
    assert settle(store, connection, session, settlement(lost, move)) == [job]
    assert states(store, connection, [job]) == [State.RUNNING]
    assert settle(store, other, successor, settlement(taken, Move.COMPLETE)) == []


def test_a_batch_is_refused_in_part(store: Store, connection: Connection) -> None:
    """What is held is written, what is not is named, in one call."""
    session, jobs = running(store, connection, 4)
    batch = [settlement(job, Move.COMPLETE) for job in jobs]
    batch[1] = batch[1]._replace(lease=LeaseId(jobs[1].lease + 1000))
    batch.append(Settlement(NOBODY, jobs[0].lease, Move.COMPLETE, keep=KEEP))
    assert sorted(settle(store, connection, session, *batch)) == sorted([jobs[1].id, NOBODY])
    assert states(store, connection, [job.id for job in jobs]) == [
        State.COMPLETED,
        State.RUNNING,
        State.COMPLETED,
        State.COMPLETED,
    ]


def test_a_deleted_job_is_refused(store: Store, connection: Connection) -> None:
    """Of a job that is gone nothing can be written."""
    built = in_state(store, connection, State.COMPLETED)
    connection.run(store.delete([built.id]))
    ended = settlement(built.job, Move.COMPLETE)
    assert settle(store, connection, built.session, ended) == [built.id]
    assert connection.run(store.get([built.id])) == []


# Requests to cancel ---------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0.0, 600.0])
@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE, Move.RELEASE])
def test_an_unwanted_job_does_not_come_back(
    store: Store, connection: Connection, move: Move, delay: float
) -> None:
    """A job with a request to cancel is cancelled where it would have waited for another run."""
    session, [job, other] = running(store, connection, 2)
    connection.run(store.cancel([job.id]))
    batch = [settlement(leased, move, delay=delay) for leased in (job, other)]
    assert settle(store, connection, session, *batch) == []
    found = record(store, connection, job.id)
    assert found.state is State.CANCELLED
    assert (found.scheduled_at, found.worker) == (None, None)
    assert close_to(found.finished_at, datetime.now(UTC))
    assert record(store, connection, other.id).state is not State.CANCELLED
    connection.run(store.stage(10))
    assert job.id not in {job.id for job in claim(store, connection, session)}


@pytest.mark.parametrize(
    ("move", "state"), [(Move.COMPLETE, State.COMPLETED), (Move.DISCARD, State.DISCARDED)]
)
def test_a_request_to_cancel_may_come_too_late(
    store: Store, connection: Connection, move: Move, state: State
) -> None:
    """A job that ended before it noticed the request ended as it did."""
    session, [job] = running(store, connection)
    connection.run(store.cancel([job.id]))
    assert settle(store, connection, session, settlement(job, move)) == []
    assert states(store, connection, [job.id]) == [state]


def test_a_request_to_cancel_is_forgotten_with_the_run(
    store: Store, connection: Connection
) -> None:
    """A job that is retried by hand after it was cancelled runs like any other."""
    session, [job] = running(store, connection)
    connection.run(store.cancel([job.id]))
    settle(store, connection, session, settlement(job, Move.RELEASE))
    assert connection.run(store.retry([job.id])) == [job.id]
    [again] = claim(store, connection, session)
    assert record(store, connection, JobId(again.id)).cancel_requested is False
    assert settle(store, connection, session, settlement(again, Move.SNOOZE)) == []
    assert states(store, connection, [job.id]) == [State.SCHEDULED]
