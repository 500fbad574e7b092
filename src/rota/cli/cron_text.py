"""Cron entries as `rota cron list` shows them."""

from datetime import UTC, datetime

from rota.cron.entry import CronRecord
from rota.terminal.documents import coming, state
from rota.terminal.output import Cell, on_terminal


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


def _brief(at: datetime) -> str:
    """A moment by the entry's own clock: to the second with its offset, shorter on a terminal."""
    if not on_terminal():
        return at.isoformat(" ", "seconds")
    seconds = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    this_year = at.year == datetime.now(UTC).astimezone(at.tzinfo).year
    return f"{at:%m-%d} {seconds}" if this_year else f"{at:%Y-%m-%d} {seconds}"
