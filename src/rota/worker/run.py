"""What a runner does just now, and why it was told to stop."""

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from rota.app.context import BatchContext, Context
    from rota.app.task import Task
    from rota.model.job import ClaimedJob
    from rota.worker.executors.process import Child


class Stop(Enum):
    """Why a run was told to stop."""

    CANCEL = "somebody asked for it"
    TIMEOUT = "its time is up"
    LOST = "the session is lost: the job is somebody else's"
    RELEASE = "the worker stops"


class Run:
    """What a runner does just now."""

    __slots__ = ("children", "context", "job", "runner", "stop", "task")

    def __init__(self, runner: "asyncio.Task[None]") -> None:
        self.runner = runner
        self.job: ClaimedJob | None = None
        self.task: Task[..., Any, Any] | None = None
        self.context: Context | BatchContext | None = None
        self.children: list[Child] = []
        self.stop: Stop | None = None
