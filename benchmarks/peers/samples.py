"""What was measured, and medians of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, float | bool | None]
"""What one measurement found; names end in their unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measurement of one peer in one round.

    Attributes:
        failure: Why there are no figures.
    """

    round: int
    measurement: str
    peer: str
    figures: Figures = field(default_factory=dict)
    failure: str | None = None


def medians(samples: Iterable[Sample]) -> dict[tuple[str, str], dict[str, float]]:
    """The median of each figure over the rounds, by measurement and peer; failures have none."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for sample in samples:
        figures = found.setdefault((sample.measurement, sample.peer), {})
        for name, value in sample.figures.items():
            if value is not None:
                figures.setdefault(name, []).append(float(value))
    return {
        key: {name: median(values) for name, values in figures.items()}
        for key, figures in found.items()
    }
