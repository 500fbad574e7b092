"""Storing jobs: on connections of Rota's own, or in a transaction of the caller's.

What the caller gives as `conn=` decides: a connection or session, async or not, or the block of a
transaction that Rota has made.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from rota.app.queues import Queues
from rota.database.adapters import Awaiting, Blocking
from rota.database.block import OwnTransaction, TransactionBlock
from rota.database.recognise import blocking_caller, caller
from rota.errors import ConfigError
from rota.events import Events, JobsEnqueued
from rota.model.enqueued import Placed, created
from rota.model.job import JobId, JobSpec, Keys
from rota.store.connections import Transaction
from rota.store.execute import adrive, drive, in_thread
from rota.store.operation import Apart, Operation, Request, Rows
from rota.store.protocol import Store

T = TypeVar("T")


class Enqueueing(ABC):
    """The part of an app that stores jobs. Tasks call it."""

    store: Store
    queues: Queues
    events: Events
    _ready: bool

    def __init__(self, events: Events) -> None:
        self._on_enqueued = events.listeners(JobsEnqueued)

    @abstractmethod
    def ready(self, *, make: bool = True) -> None:
        """Check once that the database has the tables that this Rota needs."""

    @abstractmethod
    def run(self, operation: Operation[T]) -> T:
        """Run a store's operation on a connection of Rota's own."""

    @abstractmethod
    async def arun(self, operation: Operation[T]) -> T:
        """`run` for async code."""

    def enqueue(self, spec: JobSpec, args: Sequence[str], conn: object = None) -> list[JobId]:
        """Store jobs of one spec; `args` are JSON texts."""
        if self.queues.declared:
            spec = self.queues.fill(spec)
        if conn is None:
            jobs = self.run(self.store.enqueue(spec, args, copy=True))
        else:
            jobs = self._join(conn, lambda copy: self.store.enqueue(spec, args, copy=copy))
        if self._on_enqueued:
            self._tell(spec, jobs)
        return jobs

    async def aenqueue(
        self, spec: JobSpec, args: Sequence[str], conn: object = None
    ) -> list[JobId]:
        """`enqueue` for async code."""
        if self.queues.declared:
            spec = self.queues.fill(spec)
        if conn is None:
            jobs = await self.arun(self.store.enqueue(spec, args, copy=True))
        else:
            jobs = await self._ajoin(conn, lambda copy: self.store.enqueue(spec, args, copy=copy))
        if self._on_enqueued:
            self._tell(spec, jobs)
        return jobs

    def enqueue_keyed(
        self, spec: JobSpec, args: Sequence[str], keys: Keys, conn: object = None
    ) -> list[Placed]:
        """`enqueue` for jobs that have keys; what became of each."""
        spec, inside = self.queues.fill(spec), conn is not None
        operation = self.store.enqueue_keyed(spec, args, keys, inside=inside)
        placed = self.run(operation) if conn is None else self.run_on(conn, operation)
        self.tell_placed(spec, placed)
        return placed

    async def aenqueue_keyed(
        self, spec: JobSpec, args: Sequence[str], keys: Keys, conn: object = None
    ) -> list[Placed]:
        """`enqueue_keyed` for async code."""
        spec, inside = self.queues.fill(spec), conn is not None
        operation = self.store.enqueue_keyed(spec, args, keys, inside=inside)
        placed = await (self.arun(operation) if conn is None else self.arun_on(conn, operation))
        self.tell_placed(spec, placed)
        return placed

    def tell_placed(self, spec: JobSpec, placed: Sequence[Placed]) -> None:
        """Tell whoever listens which of these jobs are new."""
        if self._on_enqueued and (new := created(placed)):
            self._tell(spec, new)

    def _tell(self, spec: JobSpec, jobs: Sequence[JobId]) -> None:
        self.events.emit(JobsEnqueued(spec.task, spec.queue, tuple(jobs)))

    # In a transaction -------------------------------------------------------------

    def transaction(self) -> OwnTransaction:
        """A transaction of Rota's own, for `with` and `async with`."""
        return OwnTransaction(self.begin)

    def begin(self) -> Transaction:
        """Begin a transaction of Rota's own; `transaction` is the way to use it."""
        self.ready()
        return self.store.transaction()

    def run_on(self, conn: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction: `conn` is what `enqueue` takes."""
        return self._join(conn, lambda _: operation)

    async def arun_on(self, conn: object, operation: Operation[T]) -> T:
        """`run_on` for async code."""
        return await self._ajoin(conn, lambda _: operation)

    def _join(self, conn: object, build: Callable[[bool], Operation[T]]) -> T:
        """Run an operation in the caller's transaction; `build` is told whether it can COPY."""
        if isinstance(conn, TransactionBlock):
            conn = conn.connection
        return self._on(blocking_caller(conn), build)

    async def _ajoin(self, conn: object, build: Callable[[bool], Operation[T]]) -> T:
        """`_join` for async code, on whichever kind of connection."""
        if isinstance(conn, TransactionBlock):
            if conn.own:
                return await in_thread(self._on, blocking_caller(conn.connection), build)
            conn = conn.connection
        found = await caller(conn)
        if isinstance(found, Blocking):
            return self._on(found, build)
        self.check_backend(found)
        if not self._ready:
            await in_thread(self.ready, make=False)
        joined = found

        async def execute(request: Request) -> Rows:
            if isinstance(request, Apart):
                return [(await self.arun(request.operation),)]
            return await joined.execute(request)

        return await adrive(build(joined.copy).steps, execute)

    def _on(self, found: Blocking, build: Callable[[bool], Operation[T]]) -> T:
        self.check_backend(found)
        self.ready(make=False)

        def execute(request: Request) -> Rows:
            if isinstance(request, Apart):
                return [(self.run(request.operation),)]
            return found.execute(request)

        return drive(build(found.copy).steps, execute)

    def check_backend(self, found: Blocking | Awaiting) -> None:
        """Refuse a caller's connection to another kind of database."""
        if found.backend != self.store.name:
            message = (
                f"conn leads to {found.backend}, but this Rota keeps its jobs in "
                f"{self.store.name}; a job can only join a transaction of its own database"
            )
            raise ConfigError(message)
