"""A web application's lifespan, for Starlette, FastAPI and every other framework that takes one.

    app = FastAPI(lifespan=web_lifespan(rota))

This is the life of the web application; `@rota.lifespan` is that of a worker. The framework itself
is not imported.
"""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rota.app.app import Rota
from rota.config import WorkerConfig
from rota.errors import ConfigError
from rota.events import WorkerStarted

if TYPE_CHECKING:
    from rota.worker import Worker

App = TypeVar("App")
State = TypeVar("State")

GRACE = 10.0
"""Seconds that a worker's jobs may go on at a web process's end, unless a config says otherwise."""

logger = logging.getLogger("rota")


@overload
def web_lifespan(
    rota: Rota, *, worker: bool | WorkerConfig = False, then: None = None
) -> Callable[[Any], AbstractAsyncContextManager[None]]: ...
@overload
def web_lifespan(
    rota: Rota,
    *,
    worker: bool | WorkerConfig = False,
    then: Callable[[App], AbstractAsyncContextManager[State]],
) -> Callable[[App], AbstractAsyncContextManager[State]]: ...


def web_lifespan(
    rota: Rota,
    *,
    worker: bool | WorkerConfig = False,
    then: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """The lifespan of a web application that enqueues jobs, and may run them as well.

    At startup it checks the database, so that a server whose database is not migrated does not
    start. At shutdown it closes Rota's connections.

    Args:
        rota: The app whose jobs it enqueues.
        worker: Whether, and how, a worker runs in this process, on the server's event loop. It
            starts after the application's own lifespan has begun and stops before that ends.
            Signals belong to the server. Each process of the server has its own worker. At
            shutdown, running jobs have 10 seconds, unless a `WorkerConfig` gives another `grace`.
        then: The application's own lifespan; what it yields becomes the requests' state, as without
            Rota.

    Raises:
        ConfigError: An argument has the wrong type, or the worker has nothing to run.
    """
    if not isinstance(rota, Rota):
        message = f"web_lifespan takes the rota.Rota first, not a {type(rota).__name__}"
        raise ConfigError(message)
    if then is not None and (not callable(then) or inspect.isasyncgenfunction(then)):
        message = (
            "then= takes a function of the application that gives an async context manager: decorate an async "
            f"function that yields with @contextlib.asynccontextmanager; this is {then!r}"
        )
        raise ConfigError(message)
    config = WorkerConfig(grace=GRACE) if worker is True else worker
    if config is not False and not isinstance(config, WorkerConfig):
        message = f"worker= takes True, False or a rota.WorkerConfig, not {worker!r}"
        raise ConfigError(message)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, rota.close)
            await asyncio.to_thread(rota.ready)
            state = None if then is None else await stack.enter_async_context(then(app))
            if config is not False:
                await stack.enter_async_context(worker_beside(rota, config))
            yield state

    return lifespan


@contextlib.asynccontextmanager
async def worker_beside(rota: Rota, config: WorkerConfig) -> AsyncIterator[None]:
    """A worker on the running event loop, beside what the block does.

    It has begun to claim when the block begins. At its end it stops in order; where the block is
    left by an error, it gives its jobs back at once. A server that leaves without an end of the
    lifespan cancels every task of the loop, and the worker gives its jobs back likewise.

    Raises:
        ConfigError: There is nothing that it could run, or the database refuses the role.
        StoreError: The database cannot be used.
    """
    from rota.worker import Worker

    worker = Worker(rota, config)
    running = await _started(rota, worker)
    try:
        yield
    except BaseException:
        worker.abort()
        raise
    else:
        worker.stop()
    finally:
        await running


async def _started(rota: Rota, worker: "Worker") -> asyncio.Task[None]:
    """Start a worker; its task, once it has begun."""
    begun = asyncio.Event()
    # It is emitted on this loop. Of another worker in this process it would come too early, at
    # worst.
    unsubscribe = rota.events.subscribe(WorkerStarted, lambda _: begun.set())
    running = asyncio.create_task(worker.arun(signals=False), name="rota-worker")
    running.add_done_callback(_tell)
    beginning = asyncio.create_task(begun.wait())
    try:
        await asyncio.wait({running, beginning}, return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        worker.abort()
        await running
        raise
    finally:
        beginning.cancel()
        unsubscribe()
    if running.done():
        await running
    return running


def _tell(running: asyncio.Task[None]) -> None:
    """Say at once that the worker has ended by an error: the server goes on without it."""
    if not running.cancelled() and (error := running.exception()) is not None:
        logger.critical("the worker in this web process has ended: %s", error)
