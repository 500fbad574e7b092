"""Plain jobs: those that need nothing but a call of their handler, many in one turn of the event loop.

An async handler that does not wait for anything has ended when its coroutine takes the first step,
so no task of the loop and no place among the running jobs is needed for it. Whoever waits, raises
or returns something goes the long way of all other jobs (`call.py`) from there on.

Known weakness: the first step of a handler cannot be cancelled by Rota, but nor can anything else
that keeps the loop busy.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextvars import Context, copy_context
from types import coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.app.batch import BatchTask
from rota.app.executor import Executor
from rota.app.queues import Keeps
from rota.app.task import Task
from rota.dispatch import Events
from rota.events import JobCompleted, JobStarted
from rota.model.headers import NodeId, only_node
from rota.model.job import ClaimedJob
from rota.worker.homes import Homes
from rota.worker.switchboard import Switchboard

if TYPE_CHECKING:
    import asyncio

TOLD_AT_ONCE = 50
"""Jobs that end before the claimer hears of them: its next claim need not wait for a turn to end."""

MOST_NODES = 1000
"""Headers that it remembers, each of which all jobs of a map have."""

Begun = tuple[ClaimedJob, Awaitable[Any] | None]
"""A job that goes the long way: what is left of its handler, or `None` where that was not called."""


class Handler(NamedTuple):
    """What a plain job of a task needs. `around` is its app's middleware, which may come later."""

    function: Callable[..., Any]
    decode: Callable[[str], tuple[list[object], dict[str, object]]]
    keeps: Keeps
    around: list[Callable[..., Any]]


class Turn:
    """How far a turn has come: the job that runs, how many have ended, and whether that one waits."""

    __slots__ = ("ended", "job", "waits")

    job: ClaimedJob

    def __init__(self) -> None:
        self.ended = 0
        self.waits = False


class PlainJobs:
    """Runs the jobs at the head of the inbox as long as they are plain; lives on the event loop.

    Attributes:
        busy: Whether it runs one.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any, Any]],
        homes: Homes,
        events: Events,
        switchboard: Switchboard,
    ) -> None:
        self._handlers = {
            name: Handler(task.function, task.codec.decode, task.keeps, homes.of(task).around)
            for name, task in tasks.items()
            if _plain(task)
        }
        self.busy = False
        self._nodes: dict[str, NodeId] = {}
        self._switchboard = switchboard
        # Asked for once: a call per job would cost more than a small handler.
        self._listeners = events.listeners(JobStarted), events.listeners(JobCompleted)

    def run(
        self, inbox: deque[ClaimedJob], clean: Context, runner: "asyncio.Task[None]", until: float
    ) -> Begun | None:
        """Run the jobs at the head of the inbox; the one that has to go the long way, if there is one.

        None where the time is up, the inbox empty, or a handler has left something behind.
        """
        if any(self._listeners):
            return inbox.popleft(), None
        turn = Turn()
        steps = self._steps(turn, inbox, clean, runner, until)
        self.busy = True
        try:
            waits_for = steps.send(None)
        except StopIteration as end:
            begun: Begun | None = end.value
            return begun
        finally:
            self.busy = False
            if turn.ended:
                self._switchboard.free(turn.ended)
        turn.waits = True
        return turn.job, _rest(steps, waits_for)

    def _node(self, headers: str) -> NodeId | None:
        """The node of a flow that a job belongs to, if its headers say nothing else."""
        node = only_node(headers)
        if node is not None:
            if len(self._nodes) >= MOST_NODES:
                self._nodes.clear()
            self._nodes[headers] = node
        return node

    async def _steps(
        self,
        turn: Turn,
        inbox: deque[ClaimedJob],
        clean: Context,
        runner: "asyncio.Task[None]",
        until: float,
    ) -> Any:
        """What `run` does; from where a handler waits what is left of that handler alone.

        One coroutine for all handlers of a turn: a first step of each by itself takes twice as
        long.
        """
        handlers, complete, nodes = self._handlers, self._switchboard.complete, self._nodes
        while inbox:
            turn.job = job = inbox.popleft()
            handler, node = handlers.get(job.task), None
            if (
                handler is None
                or job.timeout is not None
                or job.unique_key is not None
                or handler.around
                or (
                    (headers := job.headers) is not None
                    and (node := nodes.get(headers) or self._node(headers)) is None
                )
            ):
                return job, None
            try:
                args, kwargs = handler.decode(job.args)
                value = await handler.function(*args, **kwargs)
            except BaseException as error:
                if turn.waits:
                    raise
                return job, _raised(error)
            if turn.waits:
                return value
            if value is not None:
                return job, _returned(value)
            complete(job, handler.keeps[job.queue].completed, node)
            turn.ended += 1
            if turn.ended == TOLD_AT_ONCE:
                self._switchboard.free(turn.ended)
                turn.ended = 0
            if copy_context() != clean or runner.cancelling() or time.monotonic() > until:
                return None
        return None


def _plain(task: Task[..., Any, Any]) -> bool:
    """Whether jobs of this task may be plain."""
    return (
        task.executor is Executor.LOOP
        and not isinstance(task, BatchTask)
        and not task.codec.more
        and not task.store_result
        and not task.chained
    )


async def _raised(error: BaseException) -> None:
    try:
        raise error
    finally:
        del error  # else it would hold itself, by its traceback


async def _returned(value: Any) -> Any:
    return value


@coroutine
def _rest(running: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """What is left of a coroutine that waits for this."""
    while True:
        try:
            yield waits_for
        except GeneratorExit:
            running.close()
            raise
        except BaseException as error:  # noqa: BLE001 - most often that it is cancelled
            try:
                waits_for = running.throw(error)
            except StopIteration as end:
                return end.value
        else:
            return (yield from running)
