"""What the one who enqueued a job can learn of it and do with it."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from rota import JobFailed, JobHandle, JobNotFinished, JobNotFound, Rota, State
from rota.model.job import ClaimedJob, SessionId, SessionInfo
from rota.model.settlement import Settlement, cancelled, completed
from rota.model.states import Move
from tests.store.factories import error_json

INFO = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=600)


@pytest.fixture
def work(app: Rota) -> Callable[..., SessionId]:
    """Do a worker's part by hand: claim the job that waits, and settle it."""
    session = app.database.run(app.database.store.open_session(INFO))

    def work(settle: Callable[[ClaimedJob], Settlement] | None = None) -> SessionId:
        [job] = app.database.run(app.database.store.claim(session, ["default"], 10))
        if settle is not None:
            assert app.database.run(app.database.store.settle(session, [settle(job)])) == []
        return session

    return work


@pytest.fixture
def stored(app: Rota) -> Any:
    """A task that stores its result."""

    @app.task(name="stored", store_result=True)
    def stored(number: int) -> dict[str, int]:
        return {"number": number}

    return stored


def with_result(text: str | None) -> Callable[[ClaimedJob], Settlement]:
    """The handler returned."""
    return lambda job: completed(job, 60.0, text)


def discarded(job: ClaimedJob) -> Settlement:
    """The last attempt failed."""
    error = error_json(job.attempt, "builtins.ValueError", "no luck", "Traceback")
    return Settlement(job.id, job.lease, Move.DISCARD, error=error)


def test_status(send: Any, work: Any) -> None:
    """The status follows the job."""
    handle: Any = send.enqueue(1)
    assert handle.status == State.AVAILABLE
    work(with_result(None))
    assert handle.status == State.COMPLETED
    assert send.using(delay=60).enqueue(1).status is State.SCHEDULED
    assert repr(handle) == f"<JobHandle {handle.id}>"


def test_record(send: Any, work: Any) -> None:
    """The record of a running job says who runs it."""
    handle = send.enqueue(1)
    work()
    record = handle.record()
    assert (record.id, record.task, record.state) == (handle.id, "send", State.RUNNING)
    assert record.attempt == 1
    assert "alpha" in record.worker


IMPOSSIBLE = [0, -1, 2**63, -(2**63) - 1, True, 1.0, "1", None]


@pytest.mark.parametrize("job", IMPOSSIBLE)
def test_an_id_that_cannot_be(app: Rota, send: Any, job: Any) -> None:
    """What can be no id is the id of no job, and no error of the server."""
    assert send.enqueue(1).id == 1
    handle = app.job(job)
    for use in (lambda: handle.status, handle.record, handle.result, handle.wait, handle.cancel):
        with pytest.raises(
            JobNotFound, match="no job can have this id: ids are whole numbers from 1"
        ):
            use()
    assert app.job(1).status is State.AVAILABLE


@pytest.mark.asyncio
@pytest.mark.parametrize("job", IMPOSSIBLE)
async def test_an_id_that_cannot_be_in_async_code(app: Rota, send: Any, job: Any) -> None:
    """The same holds for the async twins."""
    await send.aenqueue(1)
    handle = app.job(job)
    for use in (
        handle.astatus, handle.arecord, handle.aresult, handle.await_finished, handle.acancel,
    ):  # fmt: skip
        with pytest.raises(
            JobNotFound, match="no job can have this id: ids are whole numbers from 1"
        ):
            await use()
    assert await app.job(1).astatus() is State.AVAILABLE


def test_ids_that_are_free(app: Rota) -> None:
    """The largest id that a database can hold is just one that no job has yet."""
    for job in (1, 2**63 - 1):
        with pytest.raises(JobNotFound, match=f"job {job} does not exist"):
            app.job(job).record()


def test_result(stored: Any, work: Any) -> None:
    """A stored result comes back as what its annotation says."""
    handle = stored.enqueue(4)
    work(with_result('{"number":4}'))
    assert handle.result(timeout=0) == {"number": 4}


def test_result_by_id(app: Rota, stored: Any, work: Any) -> None:
    """A handle made from an id alone gives the stored result too."""
    job = stored.enqueue(4).id
    work(with_result('{"number":4}'))
    assert app.job(job).result(timeout=0) == {"number": 4}


def test_result_of_a_task_that_is_not_here(app: Rota, stored: Any, work: Any) -> None:
    """Without its task the result is what JSON says, and not silently nothing."""
    job = stored.enqueue(4).id
    work(with_result('{"number":4}'))
    with Rota(app.url) as stranger:
        assert stranger.job(job).result(timeout=0) == {"number": 4}


def test_no_result(send: Any, work: Any) -> None:
    """A job whose task stores nothing has the result None."""
    handle = send.enqueue(1)
    work(with_result(None))
    assert handle.result(timeout=0) is None


def test_not_finished(send: Any) -> None:
    """A result that is not there in time is an error that says for how long one waited."""
    handle = send.enqueue(1)
    began = monotonic()
    with pytest.raises(JobNotFinished, match=r"0\.2 seconds"):
        handle.result(timeout=0.2)
    assert 0.2 <= monotonic() - began < 5
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)


def test_failed(send: Any, work: Any) -> None:
    """A discarded job has no result, but a reason."""
    handle = send.enqueue(1)
    work(discarded)
    with pytest.raises(JobFailed, match=r"discarded: builtins\.ValueError: no luck"):
        handle.result(timeout=0)


def test_cancelled(send: Any) -> None:
    """Waiting for the result of a cancelled job ends at once."""
    handle = send.enqueue(1)
    assert handle.cancel() is State.CANCELLED
    assert handle.cancel() is State.CANCELLED
    with pytest.raises(JobFailed, match="cancelled"):
        handle.result()


def test_cancel_of_a_running_job(send: Any, work: Any, app: Rota) -> None:
    """A running job is asked to stop; the worker says when it has."""
    handle = send.enqueue(1)
    session = work()
    assert handle.cancel() is State.RUNNING
    assert handle.record().cancel_requested
    assert app.database.run(app.database.store.renew(session)).cancel == {handle.id}


def test_cancel_of_a_finished_job(send: Any, work: Any) -> None:
    """A finished job stays what it is."""
    handle = send.enqueue(1)
    work(with_result(None))
    assert handle.cancel() is State.COMPLETED


def test_cancelled_while_running(send: Any, work: Any) -> None:
    """A job that was stopped while it ran has no result."""
    handle = send.enqueue(1)
    work(lambda job: cancelled(job, 60.0))
    with pytest.raises(JobFailed, match="cancelled"):
        handle.result(timeout=0)


def test_not_found(app: Rota) -> None:
    """No job of that id: every method says so."""
    handle: JobHandle[None] = app.job(987_654)
    for method in (handle.record, handle.result, handle.cancel):
        with pytest.raises(JobNotFound, match="987654"):
            method()
    with pytest.raises(JobNotFound, match="987654"):
        _ = handle.status


def test_not_found_before_the_commit(app: Rota, send: Any) -> None:
    """A job whose transaction is open is no job yet."""
    with app.transaction() as tx:
        handle = send.enqueue(1, conn=tx)
        with pytest.raises(JobNotFound, match=str(handle.id)):
            _ = handle.status
    assert handle.status is State.AVAILABLE


@pytest.mark.asyncio
async def test_async_twins(app: Rota, stored: Any, send: Any, work: Any) -> None:
    """Each method has a twin for async code that does the same."""
    handle = await stored.aenqueue(4)
    assert await handle.astatus() is State.AVAILABLE
    with pytest.raises(JobNotFinished):
        await handle.aresult(timeout=0.05)
    work(with_result('{"number":4}'))
    assert await handle.aresult(timeout=5) == {"number": 4}
    assert (await handle.arecord()).id == handle.id
    assert await handle.acancel() is State.COMPLETED
    other = await send.aenqueue(1)
    assert await other.acancel() is State.CANCELLED
    with pytest.raises(JobFailed):
        await other.aresult()
    ids = await send.aenqueue_many([(1,), (2,)])
    assert [await app.job(job).astatus() for job in ids] == [State.AVAILABLE] * 2
    nobody: JobHandle[None] = app.job(987_654)
    for method in (nobody.arecord, nobody.aresult, nobody.acancel, nobody.astatus):
        with pytest.raises(JobNotFound):
            await method()
