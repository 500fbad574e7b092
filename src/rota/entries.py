"""From what users write about a cron entry to the entry, with everything checked that can be."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rota.durations import seconds
from rota.errors import ArgsError, ConfigError
from rota.options import check_name
from rota.task import Task

if TYPE_CHECKING:
    from rota.cron import CronEntry

Args = Sequence[Any] | Mapping[str, Any]
"""A tuple (or list) of positional arguments, or a dict of keyword arguments."""

SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""Stands for the due time when args are checked."""


def built(
    name: str,
    expression: str,
    task: Task[..., Any, Any],
    *,
    timezone: str,
    missed: str,
    jitter: float | timedelta,
    args: Args,
    due: str | None,
) -> "CronEntry":
    """An entry of a task, whose options its jobs have.

    Raises:
        ConfigError: An option cannot be used, or the expression never comes.
        ArgsError: The args do not fit the task.
    """
    from rota.cron import CronEntry

    times = checked(expression, timezone, missed, jitter)
    spec = task.spec
    if spec.later:
        message = f"cron: task {task.name!r} has a delay or a time; leave it out of using(...)"
        raise ConfigError(message)
    return CronEntry(
        name=check_name(name, "cron"),
        task=spec.task,
        args=encoded(task, args, due),
        due=due,
        queue=spec.queue,
        priority=spec.priority,
        max_attempts=spec.max_attempts,
        timeout=spec.timeout,
        **times,
    )


def checked(
    expression: str, timezone: str, missed: str, jitter: float | timedelta
) -> dict[str, Any]:
    """When an entry is due, as its fields.

    Raises:
        ConfigError: One of them cannot be used, or the expression never comes.
    """
    # Here: who only enqueues needs no cronsim.
    from rota.cron import check_expression, check_missed, check_timezone

    return {
        "expression": check_expression(expression),
        "timezone": check_timezone(timezone),
        "missed": check_missed(missed),
        "jitter": seconds(jitter, "jitter"),
    }


def changes(
    expression: str | None,
    timezone: str | None,
    missed: str | None,
    jitter: float | timedelta | None,
    *,
    nothing: bool,
) -> dict[str, Any]:
    """The fields that change; `nothing`: no other one does.

    Raises:
        ConfigError: One of them cannot be used, or nothing changes at all.
    """
    given = {"expression": expression, "timezone": timezone, "missed": missed, "jitter": jitter}
    known = {field: value for field, value in given.items() if value is not None}
    if not known and nothing:
        message = f"cron: nothing to change; give one of {', '.join(given)}, args"
        raise ConfigError(message)
    default: dict[str, Any] = {
        "expression": "@daily", "timezone": "UTC", "missed": "latest", "jitter": 0,
    }  # fmt: skip
    found = checked(**{**default, **known})
    return {field: found[field] for field in known}


def encoded(task: Task[..., Any, Any], args: Args, due: str | None) -> str:
    """The args of an entry as JSON; checked together with a due time, and stored without it.

    Raises:
        ArgsError: They do not fit the task.
    """
    match args:
        case Mapping():
            given, named = (), dict(args)
        case tuple() | list():
            given, named = tuple(args), {}
        case _:
            message = (
                "cron: args: a tuple of positional arguments or a dict of keyword arguments is "
                f"needed, not {type(args).__name__}; for one argument write (value,)"
            )
            raise ArgsError(message)
    limit = task.app.max_args_bytes
    if due is None:
        return task.codec.encode(given, named, limit=limit)
    if due in named:
        message = f"cron: {due!r} is in args and named by due=; leave one of them out"
        raise ArgsError(message)
    from rota.cron import without

    text = task.codec.encode(given, {**named, due: SOME_DAY}, limit=limit)
    return without(text, due)
