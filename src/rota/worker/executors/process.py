"""Child processes that run one job at a time, and may crash or be killed without harm to others.

A pool of the standard library breaks as a whole when one child dies, and cannot stop a job. Here a
dead child costs the attempt it was running and is replaced with the next job. So is a child that has
run as many jobs, or needs as much memory, as it may. Where children have lifespans, the first child
starts with the worker: what is wrong with them is known before anything is claimed.
"""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from rota.app.executor import Executor
from rota.app.resources import OF_CHILDREN, Resources
from rota.app.task import Task
from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.errors import ConfigError, LifespanFailed
from rota.events import ChildReplaced, LifespanOverdue
from rota.model.job import ClaimedJob
from rota.model.notes import Note
from rota.model.settlement import ChildDied, RemoteError
from rota.outcome import Again, Discard, Retry, Snooze
from rota.worker.executors.child import Answer, OfApp, Order, Place, Setting, main
from rota.worker.homes import Home, Homes

ENDING = 1.0
"""Seconds that a child without lifespans has to end."""


class UnstorableResult(RemoteError):
    """The handler ran, and what it returned cannot be stored."""


class Hopeless(RemoteError):
    """The handler raised what its task does not retry."""


class Child:
    """One child process.

    Attributes:
        alive: Whether it can run a job.
        jobs: How many it has run.
        last: What it said last, if it has done all it may.
    """

    def __init__(self, module: str, setting: Setting) -> None:
        """Start it; it imports `module` and enters its lifespans."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=main, args=(theirs, module, setting), name="rota-child"
        )
        self._process.start()
        theirs.close()
        self.alive = True
        self.jobs = 0
        self.last: Answer | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid or 0

    def ready(self) -> None:
        """Wait until it can run a job.

        Raises:
            ChildDied: It ended before that.
            LifespanFailed: A lifespan could not be entered.
            ConfigError: A lifespan or a handler needs a resource that no lifespan yields.
        """
        answer = self._received()
        if answer.kind == "ready":
            return
        self.alive = False
        self.close(ENDING)
        error = LifespanFailed if answer.kind == "broken" else ConfigError
        message = f"in a child process: {answer.message}"
        raise error(message)

    def run(self, order: bytes, note: Callable[[list[Note]], None]) -> Answer:
        """Run a job; blocks until it has ended. `note` is called with what the handler tells.

        Raises:
            ChildDied: The process ended before it answered.
        """
        try:
            self._pipe.send_bytes(order)
        except OSError as error:
            raise self._died() from error
        while (answer := self._received()).kind == "told":
            note(answer.notes)
        self.jobs += 1
        if answer.last:
            self.alive, self.last = False, answer
        return answer

    def _received(self) -> Answer:
        try:
            return msgspec.json.decode(self._pipe.recv_bytes(), type=Answer)
        except (EOFError, OSError) as error:
            raise self._died() from error

    def _died(self) -> ChildDied:
        self.alive = False
        self._process.join()
        return ChildDied(self._process.exitcode)

    def kill(self) -> None:
        """Stop the process, whatever it does."""
        self.alive = False
        self._process.kill()

    def close(self, seconds: float) -> bool:
        """Let an idle process end, and kill it after so many seconds; whether it ended by itself."""
        self.alive = False
        self._pipe.close()
        self._process.join(seconds)
        if self._process.exitcode is not None:
            return True
        self._process.kill()
        self._process.join()
        return False


class Children:
    """As many children as the worker's config says.

    Args:
        config: The worker's.
        homes: Those of the worker's apps.
        tasks: The worker's.
        events: Told of children that are replaced, and of lifespans that take too long to be left.
        begin: Called first of all in each child.
    """

    def __init__(
        self,
        config: WorkerConfig,
        homes: Homes,
        tasks: Iterable[Task[..., Any, Any]],
        events: Events,
        begin: Callable[[], object] | None = None,
    ) -> None:
        count = config.children
        self._free = asyncio.Semaphore(count)
        self._idle: list[Child] = []
        # Each busy child has a thread that waits for its answer.
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="rota-child")
        self._ending: list[threading.Thread] = []
        self._events = events
        self._homes = homes
        self._lifespans = tuple(each for home in homes for each in home.of_children)
        self._needy = [task for task in tasks if task.executor is Executor.PROCESS and task.needs]
        self._setting = Setting(
            tuple(self._of_app(home) for home in homes),
            config.max_jobs,
            config.max_memory,
            begin,
        )

    def _of_app(self, home: Home) -> OfApp:
        return OfApp(
            tuple(_place(each.function, each.name) for each in home.of_children),
            tuple(
                _place(task.function, task.name)
                for task in self._needy
                if self._homes.of(task) is home
            ),
        )

    async def prepare(self) -> None:
        """Start a child where children have lifespans, so that what is wrong is known at once.

        Raises:
            LifespanFailed: A lifespan could not be entered.
            ConfigError: A lifespan or a handler needs a resource that no lifespan yields.
        """
        if self._lifespans:
            self._idle.append(await self._started(self._lifespans[0].function.__module__))
        else:
            for task in self._needy:
                Resources(OF_CHILDREN).of(task)

    async def _started(self, module: str) -> Child:
        loop = asyncio.get_running_loop()
        child = await loop.run_in_executor(self._threads, Child, module, self._setting)
        try:
            await loop.run_in_executor(self._threads, child.ready)
        except asyncio.CancelledError:
            child.kill()
            raise
        return child

    async def run(
        self,
        task: Task[..., Any, Any],
        job: ClaimedJob,
        running: list[Child],
        start: Callable[[], None],
        note: Callable[[list[Note]], None],
        *,
        result: bool,
        sent: dict[str, Mapping[str, str]],
    ) -> Any:
        """Run a job in a child; meanwhile `running` holds the child, so that it can be killed.

        `start` is called when a child was free and has got the job, `note` with what the handler
        tells, in a thread. What middleware has `sent` is received there.

        Returns the JSON text of the `result`, if that is wanted.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception, or the child died.
        """
        loop = asyncio.get_running_loop()
        module = task.function.__module__
        app = self._homes.of(task).number
        order = msgspec.json.encode(
            Order(module, task.function.__qualname__, job, result, app, sent)
        )
        async with self._free:
            child = self._idle.pop() if self._idle else None
            if child is None:
                child = await self._started(module)
            running.append(child)
            start()
            try:
                answer = await loop.run_in_executor(self._threads, child.run, order, note)
            except asyncio.CancelledError:
                child.kill()
                raise
            finally:
                running.clear()
                if child.alive:
                    self._idle.append(child)
                elif child.last is not None:
                    self._events.emit(ChildReplaced(child.pid, child.jobs, child.last.memory))
                    self._end(child)
        return _unpack(answer)

    def close(self, *, hurry: bool = False) -> None:
        """Let the idle children end, all at once, and wait for them; blocks."""
        while self._idle:
            self._end(self._idle.pop(), hurry=hurry)
        for thread in self._ending:
            thread.join()
        self._threads.shutdown(wait=False)

    def _end(self, child: Child, *, hurry: bool = False) -> None:
        """Let an idle child end, in a thread: its lifespans may take their time."""
        limit = ENDING if hurry else ENDING + sum(each.timeout for each in self._lifespans)

        def end() -> None:
            if not child.close(limit) and self._lifespans:
                names = ", ".join(each.name for each in self._lifespans)
                what = f"{names} (child process {child.pid})"
                self._events.emit(LifespanOverdue(what, limit))

        thread = threading.Thread(target=end, name="rota-child-end", daemon=True)
        self._ending = [other for other in self._ending if other.is_alive()]
        self._ending.append(thread)
        thread.start()


def check_findable(task: Task[..., Any, Any]) -> None:
    """Refuse a task that a child cannot import.

    Raises:
        ConfigError: The function is defined inside another one.
    """
    if "<locals>" in task.function.__qualname__:
        message = (
            f"task {task.name!r} runs in a child process, which must be able to import it; "
            "define it at the top level of a module"
        )
        raise ConfigError(message)


def _place(function: Callable[..., Any], name: str) -> Place:
    return Place(function.__module__, function.__qualname__, name)


def _unpack(answer: Answer) -> str | None:
    match answer.kind:
        case "returned":
            return answer.result
        case "snooze":
            raise Snooze(answer.after or 0.0)
        case "again":
            raise Again(after=answer.after, at=answer.at)
        case "retry":
            raise Retry(answer.message, after=answer.after)
        case "discard":
            raise Discard(answer.message)
        case "hopeless":
            raise Hopeless(answer.exception, answer.message, answer.traceback)
        case "unstorable":
            raise UnstorableResult(answer.exception, answer.message, answer.traceback)
        case _:
            raise RemoteError(answer.exception, answer.message, answer.traceback)
