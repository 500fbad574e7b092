"""The road of an enqueue: from a call to an order, and from the order to the store.

A call says which jobs of which task are wanted. What is stored is decided in the order, a value,
before any connection is touched. The async road differs in its last line.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from rota.app.arguments import Alike, Arguments, of_many
from rota.app.enqueuing import FlowPlace
from rota.app.handle import FindCodec, JobHandle
from rota.app.middleware import Middleware
from rota.app.queues import Queues
from rota.app.task import EnqueueCall, Task
from rota.app.tasks import Tasks
from rota.app.writing import LEAST, Unwritten
from rota.args import ResultCodec
from rota.database.database import Database
from rota.dispatch import Events
from rota.errors import ArgsError
from rota.events import JobsEnqueued
from rota.model.enqueued import Enqueued, Placing
from rota.model.job import JobId, JobSpec, Order


class Enqueuer:
    """Stores the jobs of an app's tasks, through its middleware.

    Attributes:
        shard: The name of the database, where several are one app.
    """

    def __init__(
        self,
        database: Database,
        queues: Queues,
        middleware: Middleware,
        events: Events,
        *,
        max_args_bytes: int | None,
        tasks: Tasks,
    ) -> None:
        self.database = database
        self.tasks = tasks
        self.queues = queues
        self.max_args_bytes = max_args_bytes
        self.middleware = middleware
        self._events = events
        self.shard: str | None = None

    def enqueue(self, call: EnqueueCall) -> Enqueued:
        """Store the jobs of a call.

        Raises:
            ArgsError: Some args do not fit; nothing was stored.
            StoreError: The database refused; nothing was stored.
        """
        if self.middleware.enqueueing:
            return self.middleware.enqueue(_shown(call), self._store)
        return self._store(call)

    async def aenqueue(self, call: EnqueueCall) -> Enqueued:
        """`enqueue` for async code."""
        if self.middleware.enqueueing:
            return await self.middleware.aenqueue(_shown(call), self._astore)
        return await self._astore(call)

    def home(self, call: EnqueueCall) -> Self:  # noqa: ARG002 - as `Enqueuing` has it
        """What stores the jobs of this call: itself, since there is one database."""
        return self

    async def ahome(self, call: EnqueueCall) -> Self:  # noqa: ARG002 - as `home`
        """`home` for async code."""
        return self

    def shards_of(
        self,
        task: Task[..., Any, Any],  # noqa: ARG002 - as `Enqueuing` has it
        args: Sequence[str],  # noqa: ARG002 - as `Enqueuing` has it
        later: Collection[str],  # noqa: ARG002 - as `Enqueuing` has it
    ) -> tuple[str, ...]:
        """None: there is one database."""
        return ()

    def flow_home(self, flow: FlowPlace) -> Self:  # noqa: ARG002 - as `home`
        """What stores a flow: itself."""
        return self

    async def aflow_home(self, flow: FlowPlace) -> Self:  # noqa: ARG002 - as `home`
        """`flow_home` for async code."""
        return self

    def handle(
        self, job: JobId, codec: ResultCodec | FindCodec, placing: Placing = Placing.CREATED
    ) -> JobHandle[Any]:
        """A handle on a job that is stored here."""
        return JobHandle(self.database, self.queues, job, codec, placing, shard=self.shard)

    def announce(self, spec: JobSpec, stored: Enqueued) -> Enqueued:
        """Tell the subscribers which jobs are new; gives back what was stored."""
        if self._events.wanted(JobsEnqueued) and (new := stored.created):
            self._events.emit(JobsEnqueued(spec.task, spec.queue, tuple(new)))
        return stored

    def _store(self, call: EnqueueCall) -> Enqueued:
        order, database = self._order(call), self.database
        return self.announce(order.spec, database.run(database.store.enqueue(order), call.conn))

    async def _astore(self, call: EnqueueCall) -> Enqueued:
        order, database = self._order(call), self.database
        stored = await database.arun(database.store.enqueue(order), call.conn)
        return self.announce(order.spec, stored)

    def _order(self, call: EnqueueCall) -> Order:
        """What a call asks for, with everything decided."""
        task, args = call.task, self._args(call)
        keys = None if task.keying is None else task.keying.keys(args)
        return Order(self.queues.fill(task.spec).at_enqueue(), args, keys)

    def _args(self, call: EnqueueCall) -> Sequence[str]:
        if isinstance(call.jobs, Alike) and self._while_stored(call):
            return Unwritten(call.jobs, partial(written, call, self.max_args_bytes))
        return written(call, self.max_args_bytes, call.jobs)

    def _while_stored(self, call: EnqueueCall) -> bool:
        """Whether args can be written while jobs are stored: if an error undoes this call alone."""
        database = self.database
        return (
            len(call.jobs) >= LEAST
            and call.conn is None
            and call.task.keying is None
            and database.store.name == "postgres"
            and not database.confined
        )


def _shown(call: EnqueueCall) -> EnqueueCall:
    """The call as middleware gets it."""
    return replace(call, jobs=tuple(call.jobs))


def written(
    call: EnqueueCall, limit: int | None, jobs: Sequence[Arguments], first: int = 0
) -> list[str]:
    """The args of jobs of a call as JSON texts of up to `limit` bytes.

    `first` is the number of the first of these jobs in the call.

    Raises:
        ArgsError: Some do not fit the task.
    """
    codec = call.task.codec
    if isinstance(jobs, Alike):
        alike = codec.encode_alike(jobs.rows, limit=limit)
        if alike is not None:
            return alike
    args: list[str] = []
    for number, (given, named) in enumerate(jobs, first):
        try:
            args.append(codec.encode(given, named, limit=limit))
        except ArgsError as error:
            if not call.many:
                raise
            raise of_many(number, error) from None
    return args
