"""How runs end: from what a handler returned or raised, or why it was stopped, to a settlement."""

from enum import Enum
from typing import Any

from rota.app.batch import BatchTask
from rota.app.task import Task
from rota.errors import ArgsError
from rota.model.job import ClaimedJob
from rota.model.settlement import Settlement, cancelled, completed, decide, released
from rota.outcome import Discard, Outcome
from rota.worker.executors.process import UnstorableResult


class Stop(Enum):
    """Why a call was told to stop."""

    CANCEL = "its cancelling was requested"
    TIMEOUT = "its time is up"
    LOST = "the session is lost: other workers run the job"
    RELEASE = "the worker stops"


def returned(
    job: ClaimedJob, task: Task[..., Any, Any], value: Any, *, encoded: bool
) -> Settlement:
    """The handler returned; `encoded` says that a result is JSON text already."""
    keep = task.keeps[job.queue]
    if value is None and (not task.store_result or isinstance(task, BatchTask)):
        return completed(job, keep.completed)
    if isinstance(value, Outcome):
        return decide(job, value, task.retry, keep.discarded)
    if not task.store_result:
        return completed(job, keep.completed)
    if encoded:
        return completed(job, keep.completed, value)
    try:
        return completed(job, keep.completed, task.result_codec.encode(value))
    except ArgsError as error:
        return _unstorable(job, task, error)


def failed(job: ClaimedJob, task: Task[..., Any, Any], error: BaseException) -> Settlement:
    """The handler raised."""
    if isinstance(error, UnstorableResult):
        return _unstorable(job, task, error)
    return decide(job, error, task.retry, task.keeps[job.queue].discarded)


def stopped(job: ClaimedJob, task: Task[..., Any, Any], reason: Stop) -> Settlement | None:
    """The handler was stopped, before its time was up; `None` if the job is not this worker's now."""
    match reason:
        case Stop.CANCEL:
            return cancelled(job, task.keeps[job.queue].cancelled)
        case Stop.RELEASE:
            return released(job)
        case Stop.LOST:
            return None
        case Stop.TIMEOUT:
            return failed(job, task, too_long(job))


def too_long(job: ClaimedJob) -> TimeoutError:
    """The error of a run whose time is up."""
    return TimeoutError(f"the attempt took longer than {job.timeout} seconds")


def _unstorable(job: ClaimedJob, task: Task[..., Any, Any], error: Exception) -> Settlement:
    # The handler has done its work; running it again would not make the result storable.
    discard = Discard(f"the handler ran, but its result cannot be stored: {error}")
    return decide(job, discard, task.retry, task.keeps[job.queue].discarded)
