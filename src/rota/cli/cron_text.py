"""Cron entries as `rota cron list` shows them."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from rota.cron.entry import CronRecord
from rota.cron.times import due_times
from rota.errors import ConfigError
from rota.terminal.output import Cell, on_terminal


def state(record: CronRecord) -> str:
    """In a word, why an entry makes no jobs; empty if it does."""
    if record.paused:
        return "paused"
    return "undeclared" if record.undeclared else ""


def coming(record: CronRecord, count: int) -> list[datetime]:
    """An entry's next due times; none where it makes no jobs."""
    if state(record) or record.due is None:
        return []
    try:
        more = due_times(record.entry.expression, record.entry.timezone, record.due)
        return [record.due, *islice(more, count - 1)]
    except ConfigError:
        return [record.due]


def row(record: CronRecord, count: int) -> list[Cell]:
    """An entry as a row of the table."""
    entry = record.entry
    return [
        entry.name,
        entry.expression,
        entry.timezone,
        ", ".join(map(_brief, coming(record, count))),
        "" if record.last is None else _brief(record.last),
        entry.task,
        state(record),
    ]


def details(record: CronRecord, count: int) -> dict[str, Any]:
    """An entry as JSON."""
    entry = record.entry
    return {
        "name": entry.name,
        "expression": entry.expression,
        "timezone": entry.timezone,
        "missed": entry.missed.value,
        "jitter": entry.jitter,
        "task": entry.task,
        "args": msgspec.Raw(entry.args.encode()),
        "due": entry.due,
        "queue": entry.queue,
        "priority": entry.priority,
        "options": None if entry.options is None else msgspec.Raw(entry.options.encode()),
        "paused": record.paused,
        "declared": record.declared,
        "undeclared": record.undeclared,
        "next": coming(record, count),
        "last": record.last,
    }


def _brief(at: datetime) -> str:
    """A moment by the entry's own clock: to the second with its offset, shorter on a terminal."""
    if not on_terminal():
        return at.isoformat(" ", "seconds")
    seconds = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    this_year = at.year == datetime.now(UTC).astimezone(at.tzinfo).year
    return f"{at:%m-%d} {seconds}" if this_year else f"{at:%Y-%m-%d} {seconds}"
