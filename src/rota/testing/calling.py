"""Calling handlers, and everything else that is different where a test is async.

What a test does is written once, as a generator of calls (`rota.testing.drain`). A blocking test
makes the calls of `Now` one after the other; an async test awaits those of `Later`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from rota.app.context import BatchContext, Context
from rota.app.executor import Executor
from rota.app.middleware import Middleware, wrapped
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import ClaimedJob
from rota.store.operation import Operation
from rota.testing.confinement import Confinement, in_loop
from rota.testing.frames import hidden
from rota.worker.ending import too_long

__tracebackhide__ = hidden

T = TypeVar("T")


class Handler:
    """One call of a handler, inside the middleware around runs."""

    def __init__(
        self,
        task: Task[..., Any, Any],
        job: ClaimedJob,
        context: Context | BatchContext,
        arguments: Callable[[], tuple[list[object], dict[str, object]]],
        middleware: Middleware,
    ) -> None:
        self._task = task
        self._job = job
        self._context = context
        self._arguments = arguments
        self._around = middleware.running
        self._around_threads = middleware.running_in_threads

    @property
    def awaits(self) -> bool:
        """Whether it needs an event loop."""
        return bool(self._around) or self._task.executor is Executor.LOOP

    def now(self) -> Any:
        """Call a blocking handler, with variables of its own, as a thread would have."""
        return copy_context().run(self._blocking)

    async def later(self, aside: Callable[[Callable[[], Any]], Awaitable[Any]]) -> Any:
        """Call any handler on an event loop; `aside` makes the call of a blocking one."""

        async def innermost() -> Any:
            if self._task.executor is Executor.LOOP:
                return await self._in_time()
            return await aside(partial(copy_context().run, self._blocking))

        if self._around:
            return await wrapped(self._around, self._context, innermost)()
        return await innermost()

    async def _in_time(self) -> Any:
        limit = asyncio.timeout(self._job.timeout)
        args, kwargs = self._arguments()
        try:
            async with limit:
                return await self._task.function(*args, **kwargs)
        except TimeoutError as error:
            if limit.expired():
                raise too_long(self._job) from error
            raise

    def _blocking(self) -> Any:
        def call() -> Any:
            args, kwargs = self._arguments()
            return self._task.function(*args, **kwargs)

        return wrapped(self._around_threads, self._context, call)()


class Side(Protocol):
    """The calls that a test makes; each gives what it says, or an awaitable of that."""

    def run(self, operation: Operation[T]) -> Any:
        """Run an operation in the test's transaction."""
        ...

    def joined(self) -> Any:
        """A savepoint for an attempt, that is still to begin."""
        ...

    def check(self, handler: Handler) -> Any:
        """Refuse a handler that cannot run here."""
        ...

    def call(self, handler: Handler) -> Any:
        """Call a handler."""
        ...

    def enqueue(self, task: Task[..., Any, Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
        """Enqueue a job; its id."""
        ...

    def outside(self, operation: Operation[T]) -> Any:
        """Run an operation on a connection of Rota's own, which commits."""
        ...

    def alone(self) -> Any:
        """Whether each statement on the connection is a transaction of its own."""
        ...

    def tell(self, call: Callable[[], None]) -> Any:
        """Tell subscribers of an event."""
        ...


class Now:
    """For blocking tests. Async handlers run on an event loop of its own."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._runner: asyncio.Runner | None = None

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in the test's transaction."""
        return self._confinement.run(operation)

    def joined(self) -> Any:
        """A savepoint for an attempt."""
        return self._confinement.joined(outer=True)

    def check(self, handler: Handler) -> None:
        """Refuse an async handler inside of an event loop, which cannot wait for it.

        Raises:
            ConfigError: It is one.
        """
        if handler.awaits and in_loop():
            message = (
                "an async handler (or middleware) cannot run inside this call: the event loop is running "
                "already; use the async twin (await rota_test.adrain(), arun, aenqueue)"
            )
            raise ConfigError(message)

    def call(self, handler: Handler) -> Any:
        """Call a handler."""
        if not handler.awaits:
            return handler.now()
        aside = self._confinement.aside
        if self._confinement.alias is not None:
            from asgiref.sync import async_to_sync

            # What its ORM does comes back to this thread, which has the test's connection.
            return async_to_sync(handler.later)(aside)
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(handler.later(aside))

    def enqueue(self, task: Task[..., Any, Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
        """Enqueue a job."""
        return task.enqueue(*args, **named).id

    def outside(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of Rota's own."""
        return self._confinement.apart(operation)

    def alone(self) -> bool:
        """Whether each statement on the connection is a transaction of its own."""
        return self._confinement.alone()

    def tell(self, call: Callable[[], None]) -> None:
        """Tell subscribers of an event."""
        call()

    def close(self) -> None:
        """End the event loop."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


class Later:
    """For async tests."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in the test's transaction."""
        return await self._confinement.arun(operation)

    async def joined(self) -> Any:
        """A savepoint for an attempt."""
        return await self._confinement.ajoined(outer=True)

    async def check(self, handler: Handler) -> None:
        """Any handler can run."""

    async def call(self, handler: Handler) -> Any:
        """Call a handler; a blocking one where it can use the test's connection."""
        return await handler.later(self._confinement.aside)

    async def enqueue(
        self, task: Task[..., Any, Any], args: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        """Enqueue a job."""
        return (await task.aenqueue(*args, **named)).id

    async def outside(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of Rota's own."""
        return await asyncio.to_thread(partial(self._confinement.apart, operation))

    async def alone(self) -> bool:
        """Whether each statement on the connection is a transaction of its own."""
        return await self._confinement.aalone()

    async def tell(self, call: Callable[[], None]) -> None:
        """Tell subscribers of an event; those of Django may use its connection."""
        if self._confinement.alias is None:
            call()
        else:
            await self._confinement.aside(call)


def now(call: Callable[[], T]) -> T:
    """Make a call."""
    return call()


async def later(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call and await what it gives."""
    return await call()
