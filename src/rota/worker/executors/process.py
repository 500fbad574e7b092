"""Child processes that run one job at a time, and may crash or be killed without harm to others.

A pool of the standard library breaks as a whole when one child dies, and cannot stop a job. Here a
dead child costs the attempt it was running and is replaced with the next job. So is a child that
has run as many jobs, or needs as much memory, as it may. Where children have lifespans, the first
child starts with the worker: what is wrong with them is known before anything is claimed.
"""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterable
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
from rota.model.notes import Note, Notes, RunNotes
from rota.model.settlement import ChildDied
from rota.worker.call import Call, Stop
from rota.worker.executors.child import OfApp, Setting, main
from rota.worker.executors.remote import Answer, place
from rota.worker.executors.remote_calls import RemoteCalls
from rota.worker.executors.seam import TimeLimit
from rota.worker.homes import Home, Homes

ENDING = 1.0
"""Seconds that a child without lifespans has to end."""

LOOK = 1.0
"""Seconds between two looks whether a child that does not answer is still there."""


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
            # A process that the handler has forked holds the pipe open beyond the child's end.
            while not self._pipe.poll(LOOK):
                if self.ended and not self._pipe.poll():
                    raise self._died()
            return msgspec.json.decode(self._pipe.recv_bytes(), type=Answer)
        except (EOFError, OSError) as error:
            raise self._died() from error

    def _died(self) -> ChildDied:
        self.alive = False
        self._process.join()
        return ChildDied(self._process.exitcode)

    @property
    def ended(self) -> bool:
        """Whether the process has ended, by itself or by force from outside."""
        return not self._process.is_alive()

    def kill(self) -> None:
        """Stop the process, whatever it does, and so the wait for its answer."""
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


class Nursery:
    """The children of a worker, whichever of its databases they run jobs of. Made on the event loop.

    Args:
        count: How many there are at once.
        begin: Called first of all in each child.

    Attributes:
        free: Taken by each job that a child runs.
        idle: The children that run none.
        preparing: Held by what starts the first child.
    """

    def __init__(self, count: int, begin: Callable[[], object] | None = None) -> None:
        self.free = asyncio.Semaphore(count)
        self.idle: list[Child] = []
        self.preparing = asyncio.Lock()
        self.begin = begin
        self._count = count
        self._lock = threading.Lock()
        self._users = 0

    def enter(self) -> ThreadPoolExecutor:
        """One more user.

        Each busy child has a thread that waits for its answer: there are threads for all children
        there may be.
        """
        with self._lock:
            self._users += 1
        return ThreadPoolExecutor(self._count, thread_name_prefix="rota-child")

    def next_idle(self) -> Child | None:
        """An idle child, if there is one; children that have died meanwhile are left out."""
        while self.idle:
            child = self.idle.pop()
            if not child.ended:
                return child
        return None

    def leave(self) -> list[Child]:
        """One user less; after the last one the idle children, which have to end."""
        with self._lock:
            self._users -= 1
            if self._users:
                return []
            ended, self.idle = self.idle, []
            return ended


class Children:
    """Runs handlers in the children of a worker.

    Args:
        nursery: Where the children are.
        config: The worker's.
        homes: Those of the worker's apps.
        tasks: The worker's.
        events: Told of children that are replaced, and of lifespans that take too long to be left.
        notes: Takes what handlers tell.
        remote: Makes the orders, and takes the answers.
    """

    capacity = 0
    lacking: tuple[str, ...] = ()

    def __init__(
        self,
        nursery: Nursery,
        config: WorkerConfig,
        homes: Homes,
        tasks: Iterable[Task[..., Any, Any]],
        events: Events,
        *,
        notes: Notes,
        remote: RemoteCalls,
    ) -> None:
        self._nursery = nursery
        self._busy: dict[Call, Child] = {}
        self._threads = nursery.enter()
        self._ending: list[threading.Thread] = []
        self._events = events
        self._notes = notes
        self._remote = remote
        self._homes = homes
        self._lifespans = tuple(each for home in homes for each in home.of_children)
        self._needy = [task for task in tasks if task.executor is Executor.PROCESS and task.needs]
        self._setting = Setting(
            tuple(self._of_app(home) for home in homes),
            config.max_jobs,
            config.max_memory,
            nursery.begin,
        )

    def _of_app(self, home: Home) -> OfApp:
        return OfApp(
            tuple(place(each.function, each.name) for each in home.of_children),
            tuple(
                place(task.function, task.name)
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
            async with self._nursery.preparing:
                if not self._nursery.idle:
                    module = self._lifespans[0].function.__module__
                    self._nursery.idle.append(await self._started(module))
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

    async def submit(self, call: Call, limit: TimeLimit) -> str | None:
        """Run the job of a call in a child, once one is free; the JSON text of its result.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception, or the child died.
        """
        loop = asyncio.get_running_loop()
        order = self._remote.order(call)
        told = RunNotes(call.job, self._notes)
        async with self._nursery.free:
            child = self._nursery.next_idle() or await self._started(order.module)
            self._busy[call] = child
            limit.begin()
            try:
                answer = await loop.run_in_executor(
                    self._threads, child.run, msgspec.json.encode(order), told.absorb
                )
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError):
                    child.kill()
                self._remote.lose(call)
                raise
            finally:
                del self._busy[call]
                if child.alive:
                    self._nursery.idle.append(child)
                elif child.last is not None:
                    self._events.emit(ChildReplaced(child.pid, child.jobs, child.last.memory))
                    self._end(child)
        return self._remote.value(call, answer)

    def cancel(self, call: Call, reason: Stop) -> None:
        """Kill the child that runs the call."""
        del reason
        if (child := self._busy.get(call)) is not None:
            child.kill()
        else:
            call.runner.cancel()

    def close(self, *, hurry: bool = False) -> None:
        """Let the idle children end, all at once, and wait for them; blocks."""
        for child in self._nursery.leave():
            self._end(child, hurry=hurry)
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
