"""Witnesses beside the figures: the speed of the machine, and the work per job.

Machines are shared, and their speed varies within minutes. Two witnesses tell whether a figure
changed because of the jobs: a fixed piece of plain Python, timed beside the load, takes longer when
the machine is slower; and the blocks that the database touches for a job do not depend on the
machine's speed at all.
"""

import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rota.measure.bench.observer import Observer

ROUNDS = 2_000
"""Rounds of the piece of work: some tenths of a millisecond."""

TRIES = 3
"""Pieces at each look, of which the shortest counts: the others may have been interrupted. Every
50 ms they are less than 1 % of a core."""

BLOCKS_EVERY = 0.5
"""Seconds between two looks at the blocks. A look reads all of pg_stat_statements, which takes
milliseconds for thousands of statements."""

Look = tuple[float, float]
"""A moment in seconds since the epoch, and the value that was found."""


def piece() -> float:
    """Seconds that a fixed piece of work takes now."""
    return min(_piece() for _ in range(TRIES))


def _piece() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(ROUNDS):
        total += number * number
    return time.perf_counter() - began


class Witness:
    """Notes, at each look, how fast the machine is and how many blocks were touched.

    Attributes:
        pieces: When the piece of work took how many seconds.
        blocks: When how many blocks had been touched; only where each statement counts at once.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.pieces: list[Look] = []
        self.blocks: list[Look] = []

    def look(self) -> None:
        """Look now."""
        now = time.time()
        self.pieces.append((now, piece()))
        if self._observer.counts_at_once and (
            not self.blocks or now - self.blocks[-1][0] >= BLOCKS_EVERY
        ):
            self.look_at_blocks()

    def look_at_blocks(self) -> None:
        """Look at the blocks, however long ago the last look was."""
        if self._observer.counts_at_once and (found := self._observer.blocks()) is not None:
            self.blocks.append((time.time(), float(found)))


def medians(looks: Sequence[Look], began: float, ends: Sequence[float]) -> list[float | None]:
    """The median of the looks in each part of the time; `None` where there was no look."""
    found: list[float | None] = []
    for start, end in zip([began, *ends[:-1]], ends, strict=True):
        values = [value for at, value in looks if start <= at < end]
        found.append(median(values) if values else None)
    return found


def increases(looks: Sequence[Look], began: float, ends: Sequence[float]) -> list[float] | None:
    """How much a counter grew in each part, evenly between two looks.

    `None` unless there were looks before the first part, in each, and after the last; and if the
    counter was reset.
    """
    if not looks or looks[0][0] > began or looks[-1][0] < ends[-1]:
        return None
    if None in medians(looks, began, ends):
        return None
    if any(later < earlier for (_, earlier), (_, later) in pairwise(looks)):
        return None

    def counted(moment: float) -> float:
        for (start, low), (end, high) in pairwise(looks):
            if start <= moment <= end:
                return low + (high - low) * (moment - start) / max(end - start, 1e-9)
        return looks[0][1]

    counts = [counted(moment) for moment in (began, *ends)]
    return [later - earlier for earlier, later in pairwise(counts)]
