"""What happened in each minute: numbers kept for a week, and how they are made of running totals.

A minute's numbers are the differences between two looks at the totals, so nothing is counted twice,
and what came in minutes that nobody noted is in the next that somebody did. A queue in which
nothing happened and nothing waits has no numbers in a minute; the sums of all queues have, so that
a minute without them is one in which no worker looked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from rota.errors import ConfigError
from rota.model.durations import written

MINUTE = 60
"""Seconds."""

KEPT = 7 * 24 * 60
"""Minutes for which the numbers are kept."""

ALL = ""
"""Stands for all queues together: no queue has this name."""

MOST = 2**31 - 1
"""The largest number of a minute that a column holds."""


class Totals(NamedTuple):
    """Of how many jobs something has ever been told: they became available, were claimed, ended."""

    appended: int = 0
    claimed: int = 0
    completed: int = 0
    discarded: int = 0


class Counted(NamedTuple):
    """What is known of a queue at one moment; `lanes` is of how many parts its totals are sums."""

    queue: str
    totals: Totals
    available: int = 0
    oldest: float | None = None
    lanes: int = 1


class Noted(NamedTuple):
    """What is written down of a queue and a minute; the next difference is taken from `totals`."""

    queue: str
    gained: Totals
    available: int
    oldest: float | None
    totals: Totals


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What happened from `at` on, for `seconds`.

    Attributes:
        at: When it begins. There are gaps between points where there was no worker.
        seconds: How much time the numbers cover: more than the point's own if minutes before it are
            missing; 0 if that is not known.
        appended: Jobs that became available: new jobs, and jobs that came back.
        claimed: Jobs that workers took.
        completed: Jobs that ended well.
        discarded: Jobs that were given up.
        available: The highest number of available jobs at the end of a minute.
        oldest: The longest time, in seconds, since the next job had been enqueued; `None` if none
            waited.
    """

    at: datetime
    seconds: int
    appended: int
    claimed: int
    completed: int
    discarded: int
    available: int
    oldest: float | None

    def per_minute(self, jobs: int) -> float | None:
        """How many of these jobs a minute; `None` if it is not known how much time they cover."""
        return jobs * MINUTE / self.seconds if self.seconds else None


def first_minute(now: datetime, seconds: float) -> int:
    """The minute, since 1970, that began so long ago; none before those that are kept."""
    return max(int((now.timestamp() - seconds) // MINUTE), int(now.timestamp() // MINUTE) - KEPT)


def whole_minutes(seconds: float) -> int:
    """How many minutes a step lasts.

    Raises:
        ConfigError: It is not a number of whole minutes, or longer than what is kept.
    """
    if seconds % MINUTE or not MINUTE <= seconds <= KEPT * MINUTE:
        message = f"step: must be whole minutes, up to seven days, not {written(seconds)}"
        raise ConfigError(message)
    return int(seconds // MINUTE)


def step_of(at: datetime, minutes: int) -> datetime:
    """When the step of so many minutes begins in which this moment lies."""
    length = minutes * MINUTE
    return datetime.fromtimestamp(at.timestamp() // length * length, UTC)


def noted(
    before: Mapping[str, Totals] | None, counted: Iterable[Counted], *, whole: bool = False
) -> list[Noted]:
    """What to write down of a minute: first all queues' sums, then queues with something to say.

    Args:
        before: The totals at the look before; of a queue that is not in there nothing was known,
            since it is new. `None`: there was no look before, so nothing can be said but what there
            is.
        counted: What is known now.
        whole: Write down every queue, for the next look.
    """
    rows = []
    for one in sorted(counted, key=attrgetter("queue")):
        old = one.totals if before is None else before.get(one.queue, Totals())
        gained = Totals(*map(_gained, old, one.totals, [one.lanes] * len(old)))
        if whole or before is None or any(gained) or one.available or one.totals != old:
            rows.append(Noted(one.queue, gained, one.available, one.oldest, one.totals))
    sums = Noted(
        ALL,
        Totals(*(min(sum(row.gained[at] for row in rows), MOST) for at in range(len(Totals())))),
        sum(row.available for row in rows),
        max((row.oldest for row in rows if row.oldest is not None), default=None),
        Totals(*(sum(row.totals[at] for row in rows) for at in range(len(Totals())))),
    )
    return [sums, *rows]


def _gained(old: int, new: int, lanes: int) -> int:
    """How far a total has come. One that begins anew, when its queue was idle, has come from nothing."""
    if new >= old:
        return min(new - old, MOST)
    # Of a sum of several nothing tells which of them began anew.
    return min(new, MOST) if lanes == 1 else 0
