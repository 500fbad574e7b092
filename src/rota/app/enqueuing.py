"""What a task needs of its app: where its jobs are stored, and how."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rota.app.enqueue import Enqueuer
    from rota.app.handle import FindCodec, JobHandle
    from rota.app.middleware import Middleware
    from rota.app.queues import Queues
    from rota.app.task import EnqueueCall, Task
    from rota.app.tasks import Tasks
    from rota.args import ResultCodec
    from rota.database.database import Database
    from rota.model.enqueued import Enqueued, Placing
    from rota.model.job import JobId


class FlowPlace(NamedTuple):
    """What says where a flow lies.

    Attributes:
        name: The flow's.
        on: The shard that was said.
        conn: The caller's connection.
        shards: Those of the keys of its jobs, each with the first node of it.
    """

    name: str
    on: str | None
    conn: object
    shards: "Mapping[str, str]"


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
    def tasks(self) -> "Tasks":
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

    def shards_of(
        self, task: "Task[..., Any, Any]", args: "Sequence[str]", later: "Collection[str]"
    ) -> "Collection[str]":
        """The shards of the keys that these args make, without parameters that get values later.

        An app with one database has none.
        """
        ...

    def flow_home(self, flow: "FlowPlace") -> "Enqueuer":
        """What stores a flow: itself, or that of the one shard of several on which it lies."""
        ...

    async def aflow_home(self, flow: "FlowPlace") -> "Enqueuer":
        """`flow_home` for async code."""
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
