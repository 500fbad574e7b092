"""How runs end: from what a handler returned or raised to a settlement."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rota.app.batch import BatchTask
from rota.app.context import Context
from rota.app.member import as_member
from rota.app.run import Run
from rota.app.successor import followed
from rota.app.task import Task
from rota.errors import ArgsError, SuccessorNotFound
from rota.model.chosen import never, unchosen
from rota.model.job import ClaimedJob
from rota.model.settlement import Settlement, completed, decide
from rota.model.states import Move
from rota.outcome import Outcome
from rota.worker.executors.remote import Hopeless, UnstorableResult

if TYPE_CHECKING:
    from rota.model.flow import Graft


def returned(
    job: ClaimedJob,
    task: Task[..., Any, Any],
    value: Any,
    *,
    encoded: bool,
    graft: "Graft | None" = None,
) -> Settlement:
    """The handler returned.

    `encoded` says that a result is JSON text already, `graft` what the run adds to its flow.
    """
    alone = job.headers is None and not task.chained
    if alone and value is None and (not task.store_result or isinstance(task, BatchTask)):
        return completed(job, task.keeps[job.queue].completed)
    settlement = _returned(job, task, value, encoded=encoded)
    if settlement.node is not None:
        try:
            settlement = as_member(settlement, job, task, value, graft, encoded=encoded)
        except ArgsError as error:
            keep = task.keeps[job.queue].discarded
            settlement = decide(job, _unstorable(error), never, keep, now=datetime.now(UTC))
    return settlement if alone else followed(settlement, job, task, value, encoded=encoded)


def _returned(
    job: ClaimedJob, task: Task[..., Any, Any], value: Any, *, encoded: bool
) -> Settlement:
    keep = task.keeps[job.queue]
    if value is None and isinstance(task, BatchTask):
        return completed(job, keep.completed)
    if isinstance(value, Outcome):
        return decide(job, value, task.retry, keep.discarded, now=datetime.now(UTC))
    if not task.store_result:
        return completed(job, keep.completed)
    if encoded:
        return completed(job, keep.completed, value)
    try:
        return completed(job, keep.completed, task.result_codec.encode(value))
    except ArgsError as error:
        unstorable = _unstorable(error)
        return decide(job, unstorable, never, keep.discarded, now=datetime.now(UTC))


def failed(job: ClaimedJob, task: Task[..., Any, Any], error: BaseException) -> Settlement:
    """The handler raised."""
    keep = task.keeps[job.queue].discarded
    policy = never if isinstance(error, Hopeless | UnstorableResult) else task.retry
    if isinstance(error, UnstorableResult):
        error = _unstorable(error)
    if isinstance(error, SuccessorNotFound):
        # Another worker may know it, and the handler was not even called.
        policy = unchosen(policy)
    settlement = decide(job, error, policy, keep, now=datetime.now(UTC))
    if task.chained or job.headers is not None:
        return followed(settlement, job, task)
    return settlement


def forgetting(settlement: Settlement, run: Run | None) -> Settlement:
    """The same; an ended round forgets its steps, a unique job what replacements left behind."""
    ends = settlement.move is Move.AGAIN or settlement.unique_key is not None
    if ends and isinstance(run, Context) and run.remembers:
        return settlement._replace(remembers=True)
    return settlement


def too_long(job: ClaimedJob) -> TimeoutError:
    """The error of a run whose time is up."""
    return TimeoutError(f"the attempt took longer than {job.timeout} seconds")


def _unstorable(error: Exception) -> ArgsError:
    # The handler has done its work; running it again would not make the result storable.
    return ArgsError(f"the handler ran, but its result cannot be stored: {error}")
