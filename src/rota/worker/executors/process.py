"""Child processes that run one job at a time, and may crash or be killed without harm to others.

A pool of the standard library breaks as a whole when one child dies, and cannot stop a job. Here a
dead child costs the attempt it was running and is replaced with the next job.
"""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import ClaimedJob
from rota.model.notes import Note
from rota.model.settlement import ChildDied, RemoteError
from rota.outcome import Again, Discard, Retry, Snooze
from rota.worker.executors.child import Answer, Order, main


class UnstorableResult(RemoteError):
    """The handler ran, and what it returned cannot be stored."""


class Hopeless(RemoteError):
    """The handler raised what its task does not retry."""


class Child:
    """One child process, started by its first job."""

    def __init__(self, module: str) -> None:
        """Start it, and wait until it has imported `module`.

        Raises:
            ChildDied: It ended before that.
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=main, args=(theirs, module), name="rota-child")
        self._process.start()
        theirs.close()
        self.alive = True
        self._receive()

    def run(self, order: bytes, note: Callable[[list[Note]], None]) -> Answer:
        """Run a job; blocks until it has ended. `note` is called with what the handler tells.

        Raises:
            ChildDied: The process ended before it answered.
        """
        try:
            self._pipe.send_bytes(order)
        except OSError as error:
            raise self._died() from error
        while (answer := msgspec.json.decode(self._receive(), type=Answer)).kind == "told":
            note(answer.notes)
        return answer

    def _receive(self) -> bytes:
        try:
            return self._pipe.recv_bytes()
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

    def close(self) -> None:
        """Let an idle process end."""
        self.alive = False
        self._pipe.close()
        self._process.join(1.0)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


class Children:
    """Up to `count` children."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._idle: list[Child] = []
        # Each busy child has a thread that waits for its answer.
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="rota-child")

    async def run(
        self,
        task: Task[..., Any, Any],
        job: ClaimedJob,
        running: list[Child],
        start: Callable[[], None],
        note: Callable[[list[Note]], None],
    ) -> Any:
        """Run a job in a child; meanwhile `running` holds the child, so that it can be killed.

        `start` is called when a child was free and has got the job, `note` with what the handler
        tells, in a thread.

        Returns the JSON text of the result, if the task stores it.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception, or the child died.
        """
        loop = asyncio.get_running_loop()
        module = task.function.__module__
        order = msgspec.json.encode(Order(module, task.function.__qualname__, job))
        async with self._free:
            child = self._idle.pop() if self._idle else None
            if child is None:
                child = await loop.run_in_executor(self._threads, Child, module)
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
        return _unpack(answer)

    def close(self) -> None:
        """Let the idle children end."""
        while self._idle:
            with contextlib.suppress(OSError):
                self._idle.pop().close()
        self._threads.shutdown(wait=False)


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
