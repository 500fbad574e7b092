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
    FlowNotFound,
    JobEnded,
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
    SignalTimeout,
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
from rota.model.settlement import ChildDied, NodeLost
from rota.model.states import State
from rota.model.unique import Unique
from rota.outcome import Again, Discard, Retry, Snooze

if TYPE_CHECKING:
    from rota.app.changes import Change
    from rota.app.flow_handle import FlowHandle
    from rota.app.results import Results
    from rota.model.audit import AuditRecord
    from rota.model.finished import FinishedJob
    from rota.model.flow import FlowGraph, FlowRecord, FlowState, NodeRecord, NodeState
    from rota.model.history import HistoryPoint
    from rota.model.limit_record import LimitRecord
    from rota.model.memory import StepRecord
    from rota.model.worker_record import HeldJob, WorkerRecord
    from rota.worker import Worker

__version__ = "0.9.0"


LATER = {
    "AuditRecord": "rota.model.audit",
    "Change": "rota.app.changes",
    "FinishedJob": "rota.model.finished",
    "FlowGraph": "rota.model.flow",
    "FlowHandle": "rota.app.flow_handle",
    "FlowRecord": "rota.model.flow",
    "FlowState": "rota.model.flow",
    "HeldJob": "rota.model.worker_record",
    "HistoryPoint": "rota.model.history",
    "LimitRecord": "rota.model.limit_record",
    "NodeRecord": "rota.model.flow",
    "NodeState": "rota.model.flow",
    "Results": "rota.app.results",
    "StepRecord": "rota.model.memory",
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
    "FlowGraph",
    "FlowHandle",
    "FlowNotFound",
    "FlowRecord",
    "FlowState",
    "HeldJob",
    "HistoryPoint",
    "JobEnded",
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
    "NodeLost",
    "NodeRecord",
    "NodeState",
    "Placing",
    "Progress",
    "QueueHandle",
    "QueueRecord",
    "QueueSettings",
    "Results",
    "Retry",
    "Rota",
    "RotaError",
    "SchemaIncomplete",
    "SchemaMissing",
    "SchemaOutdated",
    "SchemaTooNew",
    "Secret",
    "SignalTimeout",
    "Snooze",
    "SoftTimeout",
    "State",
    "StepRecord",
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
