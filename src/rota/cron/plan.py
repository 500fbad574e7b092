"""Which due times of an entry get a job."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import NamedTuple

from rota.cron.entry import CronEntry, Missed
from rota.cron.times import due_moments, time_zone
from rota.errors import ConfigError

ON_TIME = 10.0
"""Seconds by which a due time may be late and still be on time: a moment without any worker, as
during a deploy or while a dead worker's transaction ends, is no missed run."""

_LOOKS_BACK = tuple(
    timedelta(seconds=each) for each in (60, 3600, 86_400, 31 * 86_400, 366 * 86_400)
)


class Plan(NamedTuple):
    """What follows from the time: the due times that get a job, and how far that leads.

    `missed` is the first due time that gets no job, `None` if all do. Everything up to `since` has
    been dealt with; `due` is the next due time after that, `None` if there is none.
    """

    make: tuple[datetime, ...]
    missed: datetime | None
    since: datetime
    due: datetime | None


def next_due(entry: CronEntry, after: datetime) -> datetime | None:
    """The first due time after a moment, in UTC; `None` if there is none.

    Raises:
        ConfigError: The expression cannot be read, or the time zone is not known.
    """
    return next(due_moments(entry.expression, time_zone(entry.timezone), after), None)


def plan(entry: CronEntry, since: datetime, now: datetime, most: int) -> Plan:
    """Decide which of the due times after `since`, up to `now`, get a job; at most so many.

    Raises:
        ConfigError: The expression cannot be read, or the time zone is not known.
    """
    first = next_due(entry, since)
    if first is None or first > now:
        return Plan((), None, since, first)
    if entry.missed is Missed.ALL:
        make = tuple(islice(_until(entry, since, now), most))
    else:
        # Not from `since` on: there may have been no worker for years.
        on_time = max(since, now - timedelta(seconds=ON_TIME) - timedelta.resolution)
        make = tuple(islice(_until(entry, on_time, now), most))
        if not make and entry.missed is Missed.LATEST:
            make = (_newest(entry, since, now),)
    end = make[-1] if len(make) == most else now
    missed = first if not make or first < make[0] else None
    return Plan(make, missed, end, next_due(entry, end))


def in_zone(moment: datetime, entry: CronEntry) -> datetime:
    """A moment by the entry's clock; by that of UTC where its time zone is not known."""
    try:
        return moment.astimezone(time_zone(entry.timezone))
    except ConfigError:
        return moment.astimezone(UTC)


def _until(entry: CronEntry, after: datetime, until: datetime) -> Iterator[datetime]:
    """The due times after a moment up to another one, in UTC."""
    found = due_moments(entry.expression, time_zone(entry.timezone), after)
    return takewhile(lambda due: due <= until, found)


def _newest(entry: CronEntry, since: datetime, now: datetime) -> datetime:
    """The newest due time after `since` up to `now`; there is one. Looks back in growing steps."""
    for back in _LOOKS_BACK:
        if now - back <= since:
            break
        if newest := deque(_until(entry, now - back, now), maxlen=1):
            return newest[0]
    return deque(_until(entry, since, now), maxlen=1)[0]
