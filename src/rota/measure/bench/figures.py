"""From measurements to figures: pure functions on numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from statistics import median

Step = tuple[float, int]
"""A moment, and how many jobs were settled in it."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the ordered values lie (the nearest one there is)."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def percentiles(seconds: Iterable[float]) -> dict[str, float | None]:
    """The median and the tail of some durations, in milliseconds; `None` where there are none."""
    ordered = sorted(seconds)
    shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
    if not ordered:
        return dict.fromkeys(shares)
    return {name: round(percentile(ordered, share) * 1000, 3) for name, share in shares.items()}


def milliseconds(seconds: Sequence[float], share: float) -> float | None:
    """One percentile of some durations, in milliseconds."""
    return round(percentile(sorted(seconds), share) * 1000, 3) if seconds else None


def distribution(seconds: Sequence[float], points: int = 100) -> tuple[list[float], list[float]]:
    """Milliseconds, and the percentage of the durations that were not longer."""
    ordered = sorted(seconds)
    shares = [point / points for point in range(points)] + [1.0]
    return [round(percentile(ordered, share) * 1000, 3) for share in shares], [
        round(100 * share, 1) for share in shares
    ]


def ratio(one: float | None, other: float | None) -> float | None:
    """`one` ÷ `other`; `None` if that means nothing."""
    if one is None or other is None or other == 0:
        return None
    return round(one / other, 4)


class Curve:
    """How many jobs one worker had settled by when.

    Settlements come in batches; inside a batch the jobs are spread evenly over the time since
    this worker's batch before.
    """

    def __init__(self, began: float, steps: Iterable[Step]) -> None:
        """`began`: when its first job could have been claimed; the steps in any order."""
        self.moments = [began]
        self._settled = [0]
        for at, count in sorted(steps):
            self.moments.append(max(at, began))
            self._settled.append(self._settled[-1] + count)

    @property
    def total(self) -> int:
        """All its jobs."""
        return self._settled[-1]

    def settled(self, moment: float, *, before: bool = False) -> float:
        """How many jobs by that moment; `before`: without a batch that took no time at all."""
        place = (bisect_left if before else bisect_right)(self.moments, moment)
        if place == 0:
            return 0.0
        if place == len(self.moments):
            return float(self.total)
        start, end = self.moments[place - 1], self.moments[place]
        count = self._settled[place] - self._settled[place - 1]
        return self._settled[place - 1] + count * (moment - start) / (end - start)


def ends_of_parts(curves: Sequence[Curve], parts: int = 10) -> list[float]:
    """The moments at which the workers together had settled one part of the jobs after the other."""
    total = sum(one.total for one in curves)
    if not total:
        return []
    moments = sorted({at for one in curves for at in one.moments})

    def settled(moment: float, *, before: bool = False) -> float:
        return sum(one.settled(moment, before=before) for one in curves)

    ends = []
    for part in range(1, parts + 1):
        wanted = total * part / parts
        place = bisect_left(moments, wanted, key=settled)
        start, end = moments[place - 1], moments[place]
        done, reached = settled(start), settled(end, before=True)
        # Where batches that took no time make up the rest, it was reached when they came.
        ends.append(start + (end - start) * min(1.0, (wanted - done) / max(reached - done, 1e-9)))
    return ends


def tenths(workers: Iterable[tuple[float, Iterable[Step]]], parts: int = 10) -> list[float]:
    """Jobs per second in each tenth of the jobs.

    Args:
        workers: Of each one when it began, and when it settled how many jobs. What one settles
            says nothing about when another one did its jobs, so each has a curve of its own, and
            the curves are added.
        parts: Into how many parts the jobs are divided.
    """
    curves = [Curve(began, steps) for began, steps in workers]
    ends = ends_of_parts(curves, parts)
    if not ends:
        return []
    share = sum(one.total for one in curves) / parts
    starts = [min(one.moments[0] for one in curves), *ends[:-1]]
    # Two batches in the same tick of the clock would be infinitely fast.
    return [share / max(end - start, 1e-6) for start, end in zip(starts, ends, strict=True)]


def growth(values: Sequence[float]) -> dict[str, float | None]:
    """The median of the first quarter and of the last, and last ÷ first."""
    if not values:
        return {"first_quarter": None, "last_quarter": None, "last_to_first": None}
    quarter = max(1, len(values) // 4)
    first, last = median(values[:quarter]), median(values[-quarter:])
    return {
        "first_quarter": round(first, 3),
        "last_quarter": round(last, 3),
        "last_to_first": ratio(last, first),
    }
