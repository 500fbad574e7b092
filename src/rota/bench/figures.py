"""From measurements to figures: pure functions on numbers."""

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


def tenths(began: float, steps: Iterable[Step], parts: int = 10) -> list[float]:
    """Jobs per second in each tenth of the jobs.

    Settlements come in batches; inside a batch the jobs are spread evenly over the time since
    the one before.

    Args:
        began: When the first job could have been claimed.
        steps: When how many jobs were settled, in any order.
        parts: Into how many parts the jobs are divided.
    """
    steps = sorted(steps)
    share = sum(count for _, count in steps) / parts
    if not share:
        return []
    ends: list[float] = []
    done, before = 0, began
    for at, count in steps:
        while len(ends) < parts and done + count >= share * (len(ends) + 1) - 1e-9:
            into = (share * (len(ends) + 1) - done) / count
            ends.append(before + (at - before) * into)
        done, before = done + count, at
    starts = [began, *ends[:-1]]
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
