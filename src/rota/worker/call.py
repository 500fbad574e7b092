"""A call: what a runner does just now, and why it was told to stop."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from rota.app.task import Task
from rota.model.job import ClaimedJob
from rota.worker.homes import Home

if TYPE_CHECKING:
    import asyncio

    from rota.app.context import BatchContext, Context
    from rota.app.results import Results
    from rota.worker.batches import Batch


class Stop(Enum):
    """Why a call was told to stop."""

    CANCEL = "its cancelling was requested"
    TIMEOUT = "its time is up"
    LOST = "the session is lost: other workers run the job"
    RELEASE = "the worker stops"
    UNABLE = "the cluster has not what it needs"


class Call:
    """The call that a runner makes just now. One object for all its calls: that is cheaper."""

    __slots__ = ("batch", "context", "home", "job", "pages", "runner", "stop", "task")

    job: ClaimedJob
    task: Task[..., Any, Any]
    home: Home

    def __init__(self, runner: "asyncio.Task[None]") -> None:
        self.runner = runner
        self.batch: Batch | None = None
        self.context: Context | BatchContext | None = None
        self.stop: Stop | None = None
        self.pages: Mapping[str, Results[Any]] | None = None

    @property
    def jobs(self) -> Sequence[ClaimedJob]:
        """The jobs that it serves."""
        return (self.job,) if self.batch is None else self.batch.jobs
