"""Jobs as a test looks at them: which ones are meant, and what differs from what was meant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from rota.app.task import Task
from rota.app.tasks import Tasks
from rota.errors import ArgsError, ConfigError
from rota.model.job import ClaimedJob, JobId, JobRecord
from rota.model.states import Move, State
from rota.testing.frames import hidden

__tracebackhide__ = hidden

SHOWN = 10
"""Jobs that a message names at the most."""

LONGEST = 200
"""Characters of a value that a message shows."""


class DjangosTask(Protocol):
    """A task of Django's; the app of its backend knows it by its path."""

    @property
    def module_path(self) -> str:
        """The module, and the name in it."""
        ...


TaskLike = Task[..., Any, Any] | DjangosTask
"""A task, in whichever form the code under test has it."""


@dataclass(frozen=True, slots=True)
class EnqueuedJob:
    """A job that was enqueued in the test's transaction.

    Attributes:
        id: The job's id.
        task: The task's name.
        args: Its args by parameter name, as the handler gets them; as JSON has them if the task is
            not known here, or they do not fit it.
        queue: Where it waits.
        priority: Smaller first.
        state: As of now.
        attempt: Attempts begun so far.
        scheduled_at: The time it waits for, if any.
        unique_key: Its unique key, if it has one.
        record: Everything that is known about it.
    """

    id: JobId
    task: str
    args: Mapping[str, Any]
    queue: str
    priority: int
    state: State
    attempt: int
    scheduled_at: datetime | None
    unique_key: str | None
    record: JobRecord = field(repr=False)

    @classmethod
    def of(cls, record: JobRecord, tasks: Tasks) -> "EnqueuedJob":
        """A record, with its args read."""
        return cls(
            record.id, record.task, read_args(record.task, record.args, tasks), record.queue,
            record.priority, record.state, record.attempt, record.scheduled_at, record.unique_key, record,
        )  # fmt: skip

    @classmethod
    def ended(cls, job: ClaimedJob, move: Move, tasks: Tasks) -> "EnqueuedJob":
        """A job that has run, for the case that nothing is kept of it."""
        record = JobRecord(
            job.id, job.task, job.args, job.queue, job.priority, STATES.get(move, State.AVAILABLE),
            job.attempt, job.max_attempts, job.timeout, datetime.fromtimestamp(job.enqueued_at, UTC),
        )  # fmt: skip
        return cls.of(record, tasks)


STATES = {
    Move.COMPLETE: State.COMPLETED,
    Move.DISCARD: State.DISCARDED,
    Move.CANCEL: State.CANCELLED,
}


def read_args(name: str, text: str, tasks: Tasks) -> dict[str, Any]:
    """Args by parameter name, as the handler of the task gets them."""
    task = tasks.get(name)
    plain: dict[str, Any] = msgspec.json.decode(text)
    if task is None:
        return plain
    try:
        positional, named = task.codec.decode(text)
    except ArgsError:
        return plain
    names = task.codec.names
    if len(positional) > len(names):
        return plain
    return {**dict(zip(names, positional, strict=False)), **named}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a test looks for; what it does not say may be anything."""

    task: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def differences(self, job: EnqueuedJob) -> list[str]:
        """What is different about a job, one line each."""
        found = []
        if self.task is not None and job.task != self.task:
            found.append(f"the task is {job.task}")
        for name, wanted in self.options.items():
            if (is_so := getattr(job, name)) != wanted:
                found.append(f"{name} is {_shown(is_so)}, not {_shown(wanted)}")
        plain = msgspec.json.decode(job.record.args)
        for name, wanted in self.args.items():
            if name not in job.args:
                found.append(f"there is no arg {name}")
            elif wanted not in (job.args[name], plain.get(name, job.args[name])):
                found.append(f"{name} is {_shown(job.args[name])}, not {_shown(wanted)}")
        return found

    def __str__(self) -> str:
        args = ", ".join(f"{name}={_shown(value)}" for name, value in self.args.items())
        options = ", ".join(f"{name}={_shown(value)}" for name, value in self.options.items())
        task = self.task or "any task"
        what = f"{task}({args})" if args else task
        return f"{what} with {options}" if options else what

    def found_among(self, jobs: Sequence[EnqueuedJob]) -> list[EnqueuedJob]:
        """Those that it means."""
        return [job for job in jobs if not self.differences(job)]

    def nearest_first(self, jobs: Sequence[EnqueuedJob]) -> str:
        """What was enqueued: what differs least comes first."""
        if not jobs:
            return (
                "nothing was enqueued in this transaction. A job that another connection has enqueued is "
                "not seen: is rota_test.use(...) given the connection that the code under test uses, and "
                "was it called before an enqueue without conn=?"
            )

        def distance(job: EnqueuedJob) -> tuple[bool, int, int]:
            return job.task != self.task, len(self.differences(job)), -job.id

        lines = ["what was enqueued, the nearest first:"]
        ordered = sorted(jobs, key=distance)
        for job in ordered[:SHOWN]:
            args = ", ".join(f"{name}={_shown(value)}" for name, value in job.args.items())
            lines.append(f"  job {job.id}: {job.task}({args}), queue {job.queue}, {job.state}")
            if self.task in {None, job.task}:
                lines += [f"      {difference}" for difference in self.differences(job)]
        if more := len(ordered) - SHOWN:
            lines += [f"  and {more} more"] if more > 0 else []
        return "\n".join(lines)


def pattern(
    task: Task[..., Any, Any] | str | None,
    args: Mapping[str, Any] | None,
    named: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Pattern:
    """What a test looks for.

    Raises:
        ConfigError: No job could ever fit: the task has no such parameter, there is no such state,
            or the args are given by place.
    """
    if args is not None and not isinstance(args, Mapping):
        first = task.codec.names[:1] if isinstance(task, Task) else ()
        name = first[0] if first else "name"
        message = (
            f"give args by name, {name}={_shown(args)}, or as a dict: {{{name!r}: {_shown(args)}}}"
        )
        raise ConfigError(message)
    wanted = {**(args or {}), **named}
    if task is not None and not isinstance(task, str):
        unknown = [name for name in wanted if name not in task.codec.names and not task.codec.open]
        if unknown:
            message = (
                f"task {task.name!r} has no parameter {unknown[0]!r}; it has "
                f"{', '.join(task.codec.names) or 'none'}"
            )
            raise ConfigError(message)
    given = {name: value for name, value in options.items() if value is not None}
    if "state" in given:
        given["state"] = _state(given["state"])
    return Pattern(task if task is None or isinstance(task, str) else task.name, wanted, given)


def _state(given: State | str) -> State:
    if given not in set(State):
        message = f"state: {given!r} is not a state; the states are {', '.join(State)}"
        raise ConfigError(message)
    return State(given)


def _shown(value: object) -> str:
    text = repr(str(value) if isinstance(value, State) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
