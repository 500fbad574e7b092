"""Slots: how many jobs a worker runs at once, wherever they come from.

A worker of one database has all slots for it. One of several gives each of them a share: what runs
there takes slots, and where a database has jobs that wait for a slot, and fewer slots than another,
the other gives one up at the end of a job. So each has its turn, and one that is alone with work
has all of them.

A database may always claim as many jobs as its part of the slots (all of them, divided). Beyond
that it claims for the slots that the others have no jobs for. So a worker holds no more than twice
what it runs, and a database that does not answer keeps no slots from the others: what it may have
been claiming counts for `PATIENCE` seconds.

Where a cluster runs handlers, a share has slots `beyond` these, for jobs that run there. Then a
slot does not say that a handler may run in the worker itself: for that there are `places`, as many
as slots.
"""

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1.0
"""Seconds for which a claim that is not answered counts as if it gave all it asked for."""


class Slots:
    """The slots of one worker. Made by it, and shared out before its parts begin.

    Args:
        concurrency: How many there are.
        clustered: Whether a cluster runs handlers, too.
    """

    def __init__(self, concurrency: int, *, clustered: bool = False) -> None:
        self.concurrency = concurrency
        self.places = asyncio.Semaphore(concurrency) if clustered else None
        self.taken = 0
        self.shares: list[Share] = []
        self.waiting: list[Share] = []

    def share(self) -> "Share":
        """A share for one more database."""
        share = Share(self)
        self.shares.append(share)
        return share

    def freed(self) -> None:
        """A slot is free: the share with the fewest that waits for one has it."""
        self.taken -= 1
        while self.waiting and self.taken < self.concurrency:
            first = min(self.waiting, key=lambda share: share.taken)
            self.waiting.remove(first)
            first.start()


class Share:
    """What one database has of them.

    Attributes:
        taken: How many slots it has. The event loop's, as the methods of the first part.
        start: Called when there is a slot for which it has waited.
        held: How many jobs it has claimed that have not ended.
        beyond: How many slots it has for itself, beyond those that are shared: a cluster's, for
            one.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.taken = 0
        self.start: Callable[[], None] = _nothing
        self.held: Callable[[], int] = _none
        self.beyond = 0
        self._taken_beyond = 0
        self._asking = (0.0, 0)

    @property
    def places(self) -> asyncio.Semaphore | None:
        """Those for handlers in the worker itself, of all shares; none where each slot is one."""
        return self._slots.places

    # The runners ask -------------------------------------------------------------------------

    def take(self) -> bool:
        """Take a slot; false: none is free, and `start` is called when one is."""
        slots = self._slots
        if slots.taken < slots.concurrency:
            slots.taken += 1
            self.taken += 1
            return True
        if self._taken_beyond < self.beyond:
            self._taken_beyond += 1
            return True
        if self not in slots.waiting and len(slots.shares) > 1:
            slots.waiting.append(self)
        return False

    def give(self) -> None:
        """Give a slot up: one of its own, unless another share waits for one."""
        if self._taken_beyond and not (self.taken and self._slots.waiting):
            self._taken_beyond -= 1
            return
        self.taken -= 1
        self._slots.freed()

    def forgo(self) -> None:
        """Wait for no slot any more: there is nothing to run."""
        if self in self._slots.waiting:
            self._slots.waiting.remove(self)

    @property
    def yields(self) -> bool:
        """Whether a slot is to be given up now, since another share waits that has fewer."""
        waiting = self._slots.waiting
        return bool(waiting) and any(share.taken < self.taken for share in waiting)

    # The claimer asks, in its thread ---------------------------------------------------------

    @property
    def most(self) -> int:
        """How many jobs may be claimed in order to run."""
        slots = self._slots
        if len(slots.shares) == 1:
            return slots.concurrency
        others = sum(share.needs for share in slots.shares if share is not self)
        return max(slots.concurrency - others, slots.concurrency // len(slots.shares), 1)

    @property
    def busy(self) -> int:
        """How many shares have jobs: this one, and others."""
        return sum(share is self or share.held() > 0 for share in self._slots.shares)

    @property
    def needs(self) -> int:
        """How many slots it has jobs for, and may have soon."""
        since, asked = self._asking
        young = asked and time.monotonic() < since + PATIENCE
        return max(self.held() - self.beyond, 0) + (asked if young else 0)

    def asking(self, count: int) -> None:
        """A claim of so many jobs begins, or has ended with 0."""
        self._asking = (time.monotonic(), count)


def _nothing() -> None:
    """What a share without runners does."""


def _none() -> int:
    """What a share without a claimer holds."""
    return 0
