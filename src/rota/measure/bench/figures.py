"""From measurements to figures: pure functions on numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from statistics import median

Step = tuple[float, int]
"""A moment, and how many jobs were settled in it."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the ordered values lie, or the nearest value."""
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


def ratio(value: float | None, base: float | None) -> float | None:
    """`value` ÷ `base`; `None` if that means nothing."""
    if value is None or base is None or base == 0:
        return None
    return round(value / base, 4)


class Curve:
    """How many jobs a worker had settled at any moment.

    Settlements come in batches; the jobs of a batch are spread evenly over the time since the
    worker's previous batch.
    """

    def __init__(self, began: float, steps: Iterable[Step]) -> None:
        """`began`: when the first job could have been claimed; the steps in any order."""
        self.moments = [began]
        self._settled = [0]
        for at, count in sorted(steps):
            self.moments.append(max(at, began))
            self._settled.append(self._settled[-1] + count)

    @property
    def total(self) -> int:
        """All jobs of the worker."""
        return self._settled[-1]

    def settled(self, moment: float, *, before: bool = False) -> float:
        """How many jobs by that moment; `before`: without a batch that took no time at all."""
        n = (bisect_left if before else bisect_right)(self.moments, moment)
        if n == 0:
            return 0.0
        if n == len(self.moments):
            return float(self.total)
        start, end = self.moments[n - 1], self.moments[n]
        count = self._settled[n] - self._settled[n - 1]
        return self._settled[n - 1] + count * (moment - start) / (end - start)


def ends_of_parts(curves: Sequence[Curve], parts: int = 10) -> list[float]:
    """The moments at which the workers together had settled each part of the jobs."""
    total = sum(curve.total for curve in curves)
    if not total:
        return []
    moments = sorted({at for curve in curves for at in curve.moments})

    def settled(moment: float, *, before: bool = False) -> float:
        return sum(curve.settled(moment, before=before) for curve in curves)

    ends = []
    for part in range(1, parts + 1):
        wanted = total * part / parts
        n = bisect_left(moments, wanted, key=settled)
        if n == 0:
            # Batches that took no time, at the very beginning.
            ends.append(moments[0])
            continue
        start, end = moments[n - 1], moments[n]
        done, reached = settled(start), settled(end, before=True)
        # Batches that took no time end the part at once.
        ends.append(start + (end - start) * min(1.0, (wanted - done) / max(reached - done, 1e-9)))
    return ends


def tenths(workers: Iterable[tuple[float, Iterable[Step]]], parts: int = 10) -> list[float]:
    """Jobs per second in each tenth of the jobs.

    Args:
        workers: When each worker began, and when it settled how many jobs. Each has a curve of
            its own, and the curves are added: a settlement says nothing about the jobs of other
            workers.
        parts: Into how many parts the jobs are divided.
    """
    curves = [Curve(began, steps) for began, steps in workers]
    ends = ends_of_parts(curves, parts)
    if not ends:
        return []
    share = sum(curve.total for curve in curves) / parts
    starts = [min(curve.moments[0] for curve in curves), *ends[:-1]]
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
