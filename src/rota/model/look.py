"""What there is to do, as workers see it."""

from typing import NamedTuple

import msgspec


class Look(NamedTuple):
    """What there is to do, as a worker without work sees it.

    `available`: its queues have jobs to claim. `due`: in how many seconds jobs are to be staged,
    `None` if none waits for its time. `silent`: a session may have to be rescued. `untidy`: there
    is housekeeping that cannot wait for long. `cron`: in how many seconds the next cron entry is
    due, `None` if there is none or the look left cron out; `cron_later`: the next one that is not
    due already. `clock`: the database's, in seconds; `None` where a rescue does not depend on it.
    `unwatched`: producers wake no worker of its queues. `unrecorded`: the minute that is over is
    not in the history. `undecided`: something is to be decided of flows, or one is to be stopped.
    """

    available: bool
    due: float | None
    silent: bool
    untidy: bool
    cron: float | None = None
    cron_later: float | None = None
    clock: float | None = None
    unwatched: bool = False
    unrecorded: bool = False
    undecided: bool = False


class Staging(msgspec.Struct, frozen=True):
    """How many due jobs became available, and in how many seconds the next one is due."""

    staged: int
    next_due: float | None
