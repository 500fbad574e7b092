"""When a cron expression is due: wall clocks in a time zone.

The model. An expression is a pattern of wall clocks, and cronsim says which wall times match it.
What such a wall time means in a zone is decided here:

- Where the clock is put forward, some wall times do not exist. An expression that names its minutes
  and hours (`30 2 * * *`) is due at the end of that gap, once, however many of its times were in
  it. An expression with a star for minutes or hours (`*/10 * * * *`) has nothing to catch up.
- Where the clock is put back, some wall times come twice. An expression of the first kind is due
  the first time; one of the second kind both times: "every ten minutes" stays every ten minutes.

That is what Debian's cron does. cronsim nearly does, but it leaves six fields as they are, it loses
half an hour where the clock moves by half an hour (Australia/Lord_Howe), and inside the repeated
hour its next time may lie in the past. So cronsim only sees clocks that never move.

Known weakness. A zone's rules come from this machine's time zone data; a change of the law reaches
the entry when its next due time is computed.
"""

import difflib
import functools
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from rota.errors import ConfigError
from rota.model.durations import aware

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

LONGEST_EXPRESSION = 200
"""Characters an expression may have."""

_SECOND = timedelta(seconds=1)


def check_expression(expression: str) -> str:
    """Check that an expression matches some time.

    Raises:
        ConfigError: It cannot be read, or it never comes.
    """
    base = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock
    if next(_walls(expression, base), None) is None:
        message = f"expression: {expression!r} never comes: there is no such date"
        raise ConfigError(message)
    return expression


def check_timezone(timezone: str) -> str:
    """Check that a time zone is known on this machine.

    Raises:
        ConfigError: It is not.
    """
    time_zone(timezone)
    return timezone


def due_times(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """All due times after a moment, in their order, each once; in that time zone.

    Raises:
        ConfigError: The expression cannot be read, the time zone is not known, or `after` names
            none.
    """
    aware(after, "after")
    zone = time_zone(timezone)
    return (due.astimezone(zone) for due in due_moments(expression, zone, after))


def due_moments(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The due times in UTC: two moments of one zone would be compared by their wall clocks."""
    minute, hour = _fields(expression)[-5:-3]
    named = not minute.startswith("*") and not hour.startswith("*")
    reached = after.astimezone(UTC)
    wall = reached.astimezone(zone).replace(tzinfo=None, fold=0)
    early, late = _moments(wall, zone)
    # In an hour that comes twice, wall times before this one are still to come.
    start = wall - max(late - early, timedelta())
    for due in _in_zone(_walls(expression, start), zone, named=named):
        if due > reached:
            reached = due
            yield due


def _fields(expression: str) -> list[str]:
    if not isinstance(expression, str):
        message = f"expression: must be a str, not {type(expression).__name__}"
        raise ConfigError(message)
    if len(expression) > LONGEST_EXPRESSION:
        message = f"expression: must be at most {LONGEST_EXPRESSION} characters long"
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
            f"expression: must have five fields (minute, hour, day, month, weekday), or six with "
            f"seconds first, not {expression!r}"
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
        message = f"expression: {expression!r} is not valid: {said[:1].lower()}{said[1:]}"
        raise ConfigError(message) from error


def time_zone(timezone: str) -> ZoneInfo:
    """The time zone of that name.

    Raises:
        ConfigError: It is not known on this machine.
    """
    if not isinstance(timezone, str):
        message = f"timezone: must be a str, not {type(timezone).__name__}"
        raise ConfigError(message)
    found = _found(timezone)
    if isinstance(found, str):
        raise ConfigError(found)
    return found


@functools.lru_cache(maxsize=1000)
def _found(timezone: str) -> ZoneInfo | str:
    """A time zone, or why there is none; cached, since workers ask in a transaction."""
    try:
        return ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        known = {name.lower(): name for name in available_timezones()}
        close = difflib.get_close_matches(timezone.lower(), known, n=1)
        hint = f"did you mean {known[close[0]]}?" if close else "use a name such as Europe/Rome"
        return f"timezone: {timezone!r} is not known here; {hint}"


def _moments(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The moments a wall time means by the clock before and after a change; else twice the same.

    The first moment is earlier where the wall time comes twice, and later where it does not exist
    (PEP 495).
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
    """The moment between two others at which the clock is put forward, to the second."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
