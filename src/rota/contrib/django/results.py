"""From a job as Rota has it to a `TaskResult` of Django's."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.utils import timezone

from rota.contrib.django.tasks_api import Task, TaskError, TaskResult, TaskResultStatus
from rota.model.job import AttemptError, ClaimedJob, JobRecord
from rota.model.states import Move, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rota.app.context import Context
    from rota.contrib.django.backend import RotaBackend
    from rota.model.settlement import Settlement

BEGUN = "a run began on "
"""How the line of a job's log begins that says so; the worker follows."""

UNKNOWN = "unknown"
"""The worker of an attempt whose line is not kept."""

STATUS = {
    State.SCHEDULED: TaskResultStatus.READY,
    State.AVAILABLE: TaskResultStatus.READY,
    State.RETRYABLE: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.DISCARDED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}

FINISHED = {
    Move.COMPLETE: TaskResultStatus.SUCCESSFUL,
    Move.DISCARD: TaskResultStatus.FAILED,
    Move.CANCEL: TaskResultStatus.FAILED,
}
"""What a settlement means that ends a job."""

_error = msgspec.json.Decoder(AttemptError)


def task_result(backend: RotaBackend, task: Task, record: JobRecord) -> TaskResult:
    """The result of a job."""
    lines = [line for line in record.log if line.message.startswith(BEGUN)]
    workers = {line.attempt: line.message.removeprefix(BEGUN) for line in lines}
    if record.worker is not None:
        workers.setdefault(record.attempt, record.worker)
    result = _new(
        backend, task, str(record.id), STATUS[record.state], msgspec.json.decode(record.args),
        enqueued_at=record.enqueued_at,
        workers=[workers.get(attempt, UNKNOWN) for attempt in range(1, record.attempt + 1)],
    )  # fmt: skip
    if lines:
        _set(result, started_at=_shown(lines[0].at), last_attempted_at=_shown(lines[-1].at))
    _set(result, finished_at=record.finished_at and _shown(record.finished_at))
    result.errors.extend(map(_told, record.errors))
    if record.state is State.COMPLETED and record.result is not None:
        _set(result, _return_value=msgspec.json.decode(record.result))
    return result


def worker_id() -> str:
    """This worker, as `JobRecord.worker` names it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def ready_result(
    backend: RotaBackend, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TaskResult:
    """The result of a job that is about to be stored, without its id."""
    given = {"args": args, "kwargs": kwargs}
    return _new(
        backend, task, "", TaskResultStatus.READY, given, enqueued_at=datetime.now(UTC), workers=[]
    )


def running_result(backend: RotaBackend, task: Task, context: Context) -> TaskResult:
    """The result of the job that runs here and now, with its earlier attempts."""
    now = datetime.now(UTC)
    result = _new(
        backend, task, str(context.job_id), TaskResultStatus.RUNNING, context.args,
        enqueued_at=context.enqueued_at, workers=[worker_id()],
    )  # fmt: skip
    _set(result, started_at=_shown(now), last_attempted_at=_shown(now))
    backend.app.finishing.begun[context.job_id] = now
    if context.attempt > 1:
        _add_earlier(backend, result, context.attempt)
    return result


def finished_result(
    backend: RotaBackend, task: Task, job: ClaimedJob, settlement: Settlement, began: datetime
) -> TaskResult:
    """The result of a job that a worker of this process has just finished, of a run since then."""
    result = _new(
        backend, task, str(job.id), FINISHED[settlement.move], msgspec.json.decode(job.args),
        enqueued_at=datetime.fromtimestamp(job.enqueued_at, UTC), workers=[worker_id()],
    )  # fmt: skip
    _set(result, started_at=_shown(began), last_attempted_at=_shown(began))
    _set(result, finished_at=_shown(datetime.now(UTC)))
    if job.attempt > 1:
        _add_earlier(backend, result, job.attempt)
    if settlement.error is not None and len(result.errors) < job.attempt:
        result.errors.append(_told(_error.decode(settlement.error)))
    if settlement.result is not None:
        _set(result, _return_value=msgspec.json.decode(settlement.result))
    return result


def _new(
    backend: RotaBackend,
    task: Task,
    number: str,
    status: TaskResultStatus,
    given: Mapping[str, Any],
    *,
    enqueued_at: datetime,
    workers: list[str],
) -> TaskResult:
    return TaskResult(
        task=task,
        id=number,
        status=status,
        enqueued_at=_shown(enqueued_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=list(given.get("args", ())),
        kwargs=dict(given.get("kwargs", {})),
        backend=backend.alias,
        errors=[],
        worker_ids=workers,
    )


def _add_earlier(backend: RotaBackend, result: TaskResult, attempt: int) -> None:
    """Add what the database knows of the attempts before this one."""
    known = backend.find(result.id)
    if known is None:
        result.worker_ids[:0] = [UNKNOWN] * (attempt - 1)
        return
    result.worker_ids[:0] = [*known.worker_ids, *[UNKNOWN] * attempt][: attempt - 1]
    result.errors[:] = known.errors
    _set(result, started_at=known.started_at or result.started_at)


def _told(error: AttemptError) -> TaskError:
    return TaskError(exception_class_path=error.exception, traceback=error.traceback)


def _set(result: TaskResult, **values: Any) -> None:
    """Results are frozen for their users; Django's own backends fill them so."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def _shown(moment: datetime) -> datetime:
    """A moment as the project has its times."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)
