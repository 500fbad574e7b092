"""Cron entries, and when they are due: pure functions on frozen values.

The model. An expression is a pattern of wall clocks, and cronsim says which wall times match it.
What such a wall time means in a zone is decided here:

- Where the clock is put forward, some wall times do not exist. An expression that names its minutes
  and hours (`30 2 * * *`) is due at the end of that gap, once, however many of its times were in it.
  One that begins minutes or hours with a star (`*/10 * * * *`) has nothing to catch up.
- Where it is put back, some wall times come twice. The first kind is due the first time; the second
  kind both times, so that "every ten minutes" stays that.

That is what Debian's cron does, and cronsim too, but for this: it leaves six fields as they are, it
loses half an hour where the clock moves by half an hour (Australia/Lord_Howe), and inside the
repeated hour its next time may lie in the past. So it is only asked about clocks that never move.

Known weakness. A zone's rules come from this machine's time zone data; a change of the law reaches
the entry when its next due time is computed.
"""

import difflib
import functools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from cronsim import CronSim, CronSimError

from rota.durations import aware
from rota.errors import ConfigError
from rota.job import MAX_ATTEMPTS

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Words for common expressions."""

ON_TIME = 10.0
"""Seconds by which a due time may be late and still be on time: a moment without any worker, as
between two deploys or while a dead one's transaction ends, is no missed run."""

LONGEST_EXPRESSION = 200
"""Characters an expression may have."""

_LOOKS_BACK = tuple(
    timedelta(seconds=each) for each in (60, 3600, 86_400, 31 * 86_400, 366 * 86_400)
)
_SECOND = timedelta(seconds=1)


class Missed(StrEnum):
    """What becomes of due times at which no worker was there."""

    SKIP = "skip"
    """Nothing."""
    LATEST = "latest"
    """One job for all of them, at the newest one's due time."""
    ALL = "all"
    """A job for each of them, the oldest first."""


@dataclass(frozen=True, slots=True)
class CronEntry:
    """What is to be enqueued, and when.

    Args:
        name: The entry's own name.
        expression: Five fields, six with seconds in front, or a word such as `@daily`.
        task: The name of the task.
        timezone: In whose wall clock the expression is meant.
        missed: What becomes of missed runs.
        jitter: A job starts up to so many seconds after its due time.
        args: A JSON object.
        due: The parameter that gets the due time, if one does.
        queue: As in a job.
        priority: As in a job.
        max_attempts: As in a job.
        timeout: As in a job, in seconds.
        options: What else its jobs have, a JSON object (`rota.cron_jobs`); `None` where there is
            nothing more to say.
    """

    name: str
    expression: str
    task: str
    timezone: str = "UTC"
    missed: Missed = Missed.LATEST
    jitter: float = 0.0
    args: str = "{}"
    due: str | None = None
    queue: str = "default"
    priority: int = 0
    max_attempts: int = MAX_ATTEMPTS
    timeout: float | None = None
    options: str | None = None

    @property
    def declaration(self) -> str:
        """The whole entry as text: what the code has declared, to be compared."""
        fields = asdict(self)
        # There were entries before there were options; nothing has changed about these.
        if self.options is None:
            del fields["options"]
        return msgspec.json.encode(fields).decode()

    def same_times(self, other: "CronEntry") -> bool:
        """Whether both are due at the same times."""
        return (self.expression, self.timezone) == (other.expression, other.timezone)


@dataclass(frozen=True, slots=True)
class CronRecord:
    """An entry as the database knows it.

    `due` is its next due time and `last` the newest one that has made a job, in the entry's time
    zone. `declared` says that it comes from code; `undeclared` that no worker that is alive has it
    in its code any more, so that it is not run.
    """

    entry: CronEntry
    paused: bool
    declared: bool
    undeclared: bool
    due: datetime | None
    last: datetime | None


class Plan(NamedTuple):
    """What follows from the time: the due times that get a job, and how far that leads.

    `missed` is the first due time that gets none, if there are such. Everything up to `since` has
    been dealt with; `due` is the next due time after that, `None` if there is none.
    """

    make: tuple[datetime, ...]
    missed: datetime | None
    since: datetime
    due: datetime | None


def check_expression(expression: str) -> str:
    """Check that there are times that match.

    Raises:
        ConfigError: It cannot be read, or it never comes.
    """
    base = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock
    if next(_walls(expression, base), None) is None:
        message = f"expression: {expression!r} never comes: there is no such date"
        raise ConfigError(message)
    return expression


def check_timezone(timezone: str) -> str:
    """Check that a time zone is known here.

    Raises:
        ConfigError: It is not.
    """
    _zone(timezone)
    return timezone


def check_missed(missed: str) -> Missed:
    """Check what is to become of missed runs.

    Raises:
        ConfigError: It is none of the three words.
    """
    try:
        return Missed(missed)
    except ValueError:
        message = f"missed: one of {', '.join(Missed)} is needed, not {missed!r}"
        raise ConfigError(message) from None


def due_times(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """All due times after a moment, in their order, each once; in that time zone.

    Raises:
        ConfigError: The expression cannot be read, the time zone is not known, or `after` names none.
    """
    aware(after, "after")
    zone = _zone(timezone)
    return (due.astimezone(zone) for due in _due_times(expression, zone, after))


def next_due(entry: CronEntry, after: datetime) -> datetime | None:
    """The first due time after a moment, in UTC; `None` if there is none.

    Raises:
        ConfigError: The expression cannot be read, or the time zone is not known.
    """
    return next(_due_times(entry.expression, _zone(entry.timezone), after), None)


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
        return moment.astimezone(_zone(entry.timezone))
    except ConfigError:
        return moment.astimezone(UTC)


def _until(entry: CronEntry, after: datetime, until: datetime) -> Iterator[datetime]:
    """The due times after a moment up to another one, in UTC."""
    found = _due_times(entry.expression, _zone(entry.timezone), after)
    return takewhile(lambda due: due <= until, found)


def _newest(entry: CronEntry, since: datetime, now: datetime) -> datetime:
    """The newest due time after `since` up to `now`; there is one. Looks further and further back."""
    for back in _LOOKS_BACK:
        if now - back <= since:
            break
        if newest := deque(_until(entry, now - back, now), maxlen=1):
            return newest[0]
    return deque(_until(entry, since, now), maxlen=1)[0]


def _due_times(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The due times in UTC: two moments of one zone would be compared by their wall clocks."""
    minute, hour = _fields(expression)[-5:-3]
    named = not minute.startswith("*") and not hour.startswith("*")
    reached = after.astimezone(UTC)
    wall = reached.astimezone(zone).replace(tzinfo=None, fold=0)
    early, late = _moments(wall, zone)
    # In an hour that comes twice also wall times before this one are still to come.
    start = wall - max(late - early, timedelta())
    for due in _in_zone(_walls(expression, start), zone, named=named):
        if due > reached:
            reached = due
            yield due


def _fields(expression: str) -> list[str]:
    if not isinstance(expression, str):
        message = f"expression: text is needed, not {type(expression).__name__}"
        raise ConfigError(message)
    if len(expression) > LONGEST_EXPRESSION:
        message = f"expression: at most {LONGEST_EXPRESSION} characters are possible"
        raise ConfigError(message)
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in NICKNAMES:
            message = f"expression: {expression!r} is not one of {', '.join(NICKNAMES)}"
            raise ConfigError(message)
        text = NICKNAMES[text.lower()]
    fields = text.split()
    if len(fields) not in {5, 6}:
        message = (
            f"expression: five fields are needed (minute, hour, day, month, weekday), or six with "
            f"seconds in front, not {expression!r}"
        )
        raise ConfigError(message)
    return fields


def _walls(expression: str, start: datetime) -> Iterator[datetime]:
    """The wall times after this one that match, for at least fifty years."""
    try:
        return CronSim(" ".join(_fields(expression)), start)
    except (CronSimError, AssertionError) as error:
        # "Bad day-of-month"; cronsim also says so of a 30th of February.
        said = str(error) or "it cannot be read"
        message = f"expression: {expression!r} is not possible: {said[:1].lower()}{said[1:]}"
        raise ConfigError(message) from error


def _zone(timezone: str) -> ZoneInfo:
    if not isinstance(timezone, str):
        message = f"timezone: text is needed, not {type(timezone).__name__}"
        raise ConfigError(message)
    found = _found(timezone)
    if isinstance(found, str):
        raise ConfigError(found)
    return found


@functools.lru_cache(maxsize=1000)
def _found(timezone: str) -> ZoneInfo | str:
    """A time zone, or why there is none; looked for once, since workers ask in a transaction."""
    try:
        return ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        known = {name.lower(): name for name in available_timezones()}
        close = difflib.get_close_matches(timezone.lower(), known, n=1)
        hint = f"did you mean {known[close[0]]}?" if close else "use a name such as Europe/Rome"
        return f"timezone: {timezone!r} is not known here; {hint}"


def _moments(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """What a wall time means by the clock before and after a change; else twice the same.

    The first is earlier where the wall time comes twice, and later where it does not exist (PEP
    495).
    """
    early = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    return early, wall.replace(tzinfo=zone, fold=1).astimezone(UTC)


def _in_zone(walls: Iterable[datetime], zone: ZoneInfo, *, named: bool) -> Iterator[datetime]:
    """The moments that wall times mean, in their order; see the top of this file."""
    second: deque[datetime] = deque()
    for wall in walls:
        early, late = _moments(wall, zone)
        while second and second[0] < early:
            yield second.popleft()
        if early <= late:
            yield early
            if early < late and not named:
                second.append(late)
        elif named:
            yield _end_of_gap(late, early, zone)
    yield from second


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The moment between these two at which the clock is put forward, to the second."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
