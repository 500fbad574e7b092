"""Rota: a job queue that lives in the database you already have.

    from rota import Rota

    rota = Rota("postgresql:///shop")

    @rota.task
    async def send_receipt(order_id: int) -> None: ...

    send_receipt.enqueue(42)

Run the jobs with `rota worker MODULE:rota`.
"""

from typing import TYPE_CHECKING, Any

from rota.app.app import Rota
from rota.app.batch import BatchTask
from rota.app.context import BatchContext, Context
from rota.app.executor import Executor
from rota.app.handle import JobHandle
from rota.app.queue_handle import QueueHandle
from rota.app.task import EnqueueCall, Task
from rota.args.provided import PROVIDED
from rota.args.secret import Secret
from rota.config import WorkerConfig
from rota.errors import (
    ArgsError,
    ConfigError,
    ConnectionsInUse,
    CronEntryExists,
    CronEntryNotFound,
    DatabaseRefused,
    JobExists,
    JobFailed,
    JobNotFinished,
    JobNotFound,
    LeaseLost,
    LifespanFailed,
    RotaError,
    SchemaIncomplete,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    SoftTimeout,
    StoreError,
    StoreUnavailable,
    SuccessorNotFound,
    TaskAlreadyRegistered,
    TaskError,
    TaskNotFound,
    TransactionEnded,
    WorkerDied,
)
from rota.model.backoff import Backoff
from rota.model.enqueued import Enqueued, Placing
from rota.model.job import JobId, JobRecord, LogLine, Progress, QueueRecord
from rota.model.limit import Limit
from rota.model.queue_settings import QueueSettings
from rota.model.settlement import ChildDied
from rota.model.states import State
from rota.model.unique import Unique
from rota.outcome import Again, Discard, Retry, Snooze

if TYPE_CHECKING:
    from rota.app.changes import Change
    from rota.model.audit import AuditRecord
    from rota.model.finished import FinishedJob
    from rota.model.history import HistoryPoint
    from rota.model.limit_record import LimitRecord
    from rota.model.worker_record import HeldJob, WorkerRecord
    from rota.worker import Worker

__version__ = "0.1.0"


LATER = {
    "AuditRecord": "rota.model.audit",
    "Change": "rota.app.changes",
    "FinishedJob": "rota.model.finished",
    "HeldJob": "rota.model.worker_record",
    "HistoryPoint": "rota.model.history",
    "LimitRecord": "rota.model.limit_record",
    "Worker": "rota.worker",
    "WorkerRecord": "rota.model.worker_record",
}
"""What is imported where it is asked for: programs that only enqueue shall not wait for it."""


def __getattr__(name: str) -> Any:
    if name in LATER:
        import importlib

        return getattr(importlib.import_module(LATER[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


__all__ = [
    "PROVIDED",
    "Again",
    "ArgsError",
    "AuditRecord",
    "Backoff",
    "BatchContext",
    "BatchTask",
    "Change",
    "ChildDied",
    "ConfigError",
    "ConnectionsInUse",
    "Context",
    "CronEntryExists",
    "CronEntryNotFound",
    "DatabaseRefused",
    "Discard",
    "EnqueueCall",
    "Enqueued",
    "Executor",
    "FinishedJob",
    "HeldJob",
    "HistoryPoint",
    "JobExists",
    "JobFailed",
    "JobHandle",
    "JobId",
    "JobNotFinished",
    "JobNotFound",
    "JobRecord",
    "LeaseLost",
    "LifespanFailed",
    "Limit",
    "LimitRecord",
    "LogLine",
    "Placing",
    "Progress",
    "QueueHandle",
    "QueueRecord",
    "QueueSettings",
    "Retry",
    "Rota",
    "RotaError",
    "SchemaIncomplete",
    "SchemaMissing",
    "SchemaOutdated",
    "SchemaTooNew",
    "Secret",
    "Snooze",
    "SoftTimeout",
    "State",
    "StoreError",
    "StoreUnavailable",
    "SuccessorNotFound",
    "Task",
    "TaskAlreadyRegistered",
    "TaskError",
    "TaskNotFound",
    "TransactionEnded",
    "Unique",
    "Worker",
    "WorkerConfig",
    "WorkerDied",
    "WorkerRecord",
]
