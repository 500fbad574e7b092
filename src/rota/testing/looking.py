"""What was enqueued in a test's transaction."""

from collections.abc import Mapping
from typing import Any

from rota.model.states import State
from rota.testing.frames import hidden
from rota.testing.jobs import EnqueuedJob, Pattern, TaskLike, pattern
from rota.testing.using import Using

__tracebackhide__ = hidden


class Looking(Using):
    """Looks at the jobs of a test's transaction."""

    def jobs(
        self,
        task: TaskLike | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> list[EnqueuedJob]:
        """The jobs enqueued in the transaction, in their order, in whatever state they are now.

        Args:
            task: Only those of this task.
            args: Only those with these args, among others.
            queue: Only those of this queue.
            priority: Only those of this priority.
            state: Only those in this state.
            named: Only those with these args; `args` is for names that mean something else here.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return wanted.found_among(self._do(self._part.jobs))

    async def ajobs(
        self,
        task: TaskLike | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> list[EnqueuedJob]:
        """`jobs` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return wanted.found_among(await self._ado(self._part.jobs))

    def assert_enqueued(
        self,
        task: TaskLike | str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        count: int | None = None,
        **named: Any,
    ) -> EnqueuedJob:
        """Check that a job of this task was enqueued, with these args among others; the newest such job.

        Args:
            task: The task, or its name.
            args: Some of its args.
            queue: In this queue.
            priority: With this priority.
            state: In this state now.
            count: Exactly so many, instead of one or more.
            named: Some of its args; `args` is for names that mean something else here.

        Raises:
            AssertionError: No such job was; the message says what was enqueued, the nearest first.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return _enqueued(wanted, self._do(self._part.jobs), count)

    async def aassert_enqueued(
        self,
        task: TaskLike | str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        count: int | None = None,
        **named: Any,
    ) -> EnqueuedJob:
        """`assert_enqueued` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return _enqueued(wanted, await self._ado(self._part.jobs), count)

    def refute_enqueued(
        self,
        task: TaskLike | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> None:
        """Check that no such job was enqueued; without arguments, none at all.

        Raises:
            AssertionError: One was.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        _refuted(wanted, self._do(self._part.jobs))

    async def arefute_enqueued(
        self,
        task: TaskLike | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> None:
        """`refute_enqueued` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        _refuted(wanted, await self._ado(self._part.jobs))

    def _pattern(
        self,
        task: TaskLike | str | None,
        args: Mapping[str, Any] | None,
        named: Mapping[str, Any],
        **options: Any,
    ) -> Pattern:
        mine = task if task is None or isinstance(task, str) else self._mine(task)
        return pattern(mine, args, named, options)


def _enqueued(wanted: Pattern, jobs: list[EnqueuedJob], count: int | None) -> EnqueuedJob:
    found = wanted.found_among(jobs)
    if not found or (count is not None and len(found) != count):
        expected = "" if count is None else f", and {count} should be"
        message = f"{_jobs(len(found))} of {wanted} {_was(len(found))} enqueued{expected}"
        raise AssertionError(f"{message}\n{wanted.nearest_first(jobs)}")
    return found[-1]


def _refuted(wanted: Pattern, jobs: list[EnqueuedJob]) -> None:
    if found := wanted.found_among(jobs):
        number = len(found)
        message = f"{_jobs(number)} of {wanted} {_was(number)} enqueued, and none should be"
        raise AssertionError(f"{message}\n{wanted.nearest_first(found)}")


def _jobs(number: int) -> str:
    return f"{number or 'no'} job{'s' if number > 1 else ''}"


def _was(number: int) -> str:
    return "were" if number > 1 else "was"
