"""From what users write about a cron entry to the entry, with everything checked that can be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rota.app.queues import Queues
from rota.app.task import Task
from rota.errors import ArgsError, ConfigError
from rota.model.durations import seconds
from rota.model.keys import Keying
from rota.model.options import JobOptions, check_name
from rota.model.unique import OnConflict

if TYPE_CHECKING:
    from rota.cron.entry import CronEntry
    from rota.cron.jobs import CronOptions

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
    # Here, as below: who only enqueues needs no cronsim.
    from rota.cron.entry import CronEntry
    from rota.cron.jobs import with_options

    times = checked(expression, timezone, missed, jitter)
    options = _options(task)
    spec = task.spec
    if spec.later:
        message = f"cron: task {task.name!r} has a delay or a time; leave it out of using(...)"
        raise ConfigError(message)
    entry = CronEntry(
        name=check_name(name, "cron"),
        task=spec.task,
        due=due,
        queue=spec.queue,
        priority=spec.priority,
        max_attempts=spec.attempts(None),
        timeout=spec.time_limit(None),
        **times,
    )
    return with_args(with_options(entry, options), task, args)


def with_args(entry: "CronEntry", task: Task[..., Any, Any], args: Args) -> "CronEntry":
    """An entry of a task with these args, and with their keys.

    Raises:
        ArgsError: The args do not fit the task, or make no key.
        ConfigError: A key would need the due time, or something that is no argument of the task.
    """
    from rota.cron.jobs import options_of, with_options

    text = encoded(task, args, entry.due)
    options = _keyed(options_of(entry), task, text, entry.due)
    return with_options(replace(entry, args=text), options)


def filled(entry: "CronEntry", queues: Queues) -> "CronEntry":
    """An entry with what the code says of its queue, where its task has not said it."""
    from rota.cron.jobs import options_of, spec_of, with_options

    spec = queues.fill(spec_of(entry))
    new = replace(entry, max_attempts=spec.attempts(None), timeout=spec.time_limit(None))
    return with_options(new, options_of(entry))


def checked(
    expression: str, timezone: str, missed: str, jitter: float | timedelta
) -> dict[str, Any]:
    """When an entry is due, as its fields.

    Raises:
        ConfigError: One of them cannot be used, or the expression never comes.
    """
    from rota.cron.entry import check_missed
    from rota.cron.times import check_expression, check_timezone

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


def _options(task: Task[..., Any, Any]) -> "CronOptions":
    """What the jobs of a task have, before their keys are known.

    Raises:
        ConfigError: The task debounces.
    """
    from rota.cron.jobs import CronOptions

    unique = task.spec.unique
    if unique is not None and unique.on_conflict == OnConflict.DEBOUNCE:
        message = (
            f"cron: unique of task {task.name!r} debounces: its jobs wait for a pause between "
            "enqueues, but jobs of an entry start at their due times; declare the "
            "entry with .using(unique=Unique(…, on_conflict='replace')), or 'skip'"
        )
        raise ConfigError(message)
    if unique is not None and unique.on_conflict == OnConflict.RAISE:
        # An error would reach no caller.
        unique = replace(unique, on_conflict=OnConflict.SKIP)
    expires = task.spec.expires
    if isinstance(expires, datetime):
        message = (
            f"cron: expires of task {task.name!r} is a fixed moment, after which no job of the entry would "
            "run; give a number of seconds, which count for each job"
        )
        raise ConfigError(message)
    return CronOptions(
        attempts_given=task.spec.max_attempts is not None,
        timeout_given=task.spec.timeout is not None,
        unique=unique,
        limit=task.options.limit,
        fair=task.options.fair,
        headers=dict(task.options.headers or {}) or None,
        expires=expires,
        redact=task.redact,
    )


def _keyed(
    options: "CronOptions", task: Task[..., Any, Any], args: str, due: str | None
) -> "CronOptions":
    """The options with the keys of these args (JSON text).

    Raises:
        ArgsError: The args make no key.
        ConfigError: A key would need the due time, or something that is no argument of the task.
    """
    keyed = JobOptions(unique=options.unique, limit=options.limit, fair=options.fair)
    keying = Keying(keyed, task.function, task.name, task.codec.context_parameter)
    for template in keying.templates:
        if due in template.names:
            message = (
                f"cron: {template.what}: {template.text!r} names {due!r}, which gets the due time: "
                "every job would have a key of its own, and each due time makes only one job "
                "anyway; declare the entry with .using(…) and a key without it"
            )
            raise ConfigError(message)
    unique, limit, fair = (None if keys is None else keys[0] for keys in keying.keys([args]))
    return msgspec.structs.replace(options, unique_key=unique, limit_key=limit, fair_key=fair)


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
                "cron: args: must be a tuple of positional arguments or a dict of keyword "
                f"arguments, not {type(args).__name__}; for a single argument write (value,)"
            )
            raise ArgsError(message)
    limit = task.enqueuing.max_args_bytes
    if due is None:
        return task.codec.encode(given, named, limit=limit)
    if due in named:
        message = f"cron: {due!r} is given by args and by due=; leave one of them out"
        raise ArgsError(message)
    from rota.cron.jobs import without

    text = task.codec.encode(given, {**named, due: SOME_DAY}, limit=limit)
    return without(text, due)
