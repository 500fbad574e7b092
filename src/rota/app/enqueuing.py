"""What a task needs of its app: where its jobs are stored, and how."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.app.handle import FindCodec, JobHandle
    from rota.app.middleware import Middleware
    from rota.app.queues import Queues
    from rota.app.task import EnqueueCall, Task
    from rota.args import ResultCodec
    from rota.database.database import Database
    from rota.model.enqueued import Enqueued, Placing
    from rota.model.job import JobId


class Enqueuing(Protocol):
    """The part of an app that stores the jobs of its tasks."""

    @property
    def database(self) -> "Database":
        """Where the jobs are kept."""
        ...

    @property
    def queues(self) -> "Queues":
        """What is declared for queues."""
        ...

    @property
    def tasks(self) -> "Mapping[str, Task[..., Any, Any]]":
        """The tasks of the app, by name."""
        ...

    @property
    def max_args_bytes(self) -> int | None:
        """The largest args a job may have, as JSON."""
        ...

    @property
    def middleware(self) -> "Middleware":
        """What is registered around enqueueing and runs."""
        ...

    def home(self, call: "EnqueueCall") -> "Enqueuing":
        """What stores the jobs of this call: itself, or that of one shard of several."""
        ...

    async def ahome(self, call: "EnqueueCall") -> "Enqueuing":
        """`home` for async code."""
        ...

    def enqueue(self, call: "EnqueueCall") -> "Enqueued":
        """Store the jobs of a call."""
        ...

    async def aenqueue(self, call: "EnqueueCall") -> "Enqueued":
        """`enqueue` for async code."""
        ...

    def handle(
        self, job: "JobId", codec: "ResultCodec | FindCodec", placing: "Placing"
    ) -> "JobHandle[Any]":
        """A handle on a job that is stored here."""
        ...
