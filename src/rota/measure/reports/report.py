"""The form of a measurement's answer: what JSON, the table and the HTML page all show.

A measurement returns a `Result`; `report` adds where, when and with which settings it was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

Value: TypeAlias = float | int | str | bool | None
Figures: TypeAlias = "Mapping[str, Value | Figures]"
"""Numbers under names that end in their unit where it is not plain; groups may nest."""


@dataclass(frozen=True, slots=True)
class Series:
    """What was measured again and again: `y` in `unit`, at `x` in `x_unit`.

    A `None` in `y` means that there was nothing to measure in that interval.
    """

    unit: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    x_unit: str = "s"


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of some of the report's series. The title says what to see.

    Attributes:
        names: Names of lines in the legend, where they differ from the names of their series.
        spread: Whether some lines may lie far above others. Where they do, the axis is
            logarithmic; over numbers of jobs both axes always are.
    """

    title: str
    x: str
    y: str
    series: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart that compares: for each label one bar of each group.

    Attributes:
        stacked: Whether the groups of a label add up, and so are parts of one bar.
    """

    title: str
    y: str
    groups: Mapping[str, Mapping[str, float]]
    stacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a measurement found out.

    `stopped_by` says what ended it early, such as "Ctrl-C" or "SIGTERM": the result is partial.
    """

    figures: Figures
    series: Mapping[str, Series] = field(default_factory=dict)
    charts: tuple[Lines | Bars, ...] = ()
    notes: tuple[str, ...] = ()
    stopped_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where something was measured; `commit` is None where Rota is no git checkout."""

    machine: Mapping[str, Value]
    versions: Mapping[str, str]
    commit: str | None
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A result, and everything a reader needs to believe it.

    `when` is the moment of the end in UTC.
    """

    name: str
    question: str
    when: str
    partial: bool
    machine: Mapping[str, Value]
    versions: Mapping[str, str]
    commit: str | None
    settings: Mapping[str, str]
    parameters: Mapping[str, Value]
    figures: Figures
    series: Mapping[str, Series]
    notes: tuple[str, ...]


def report(
    name: str,
    question: str,
    parameters: Mapping[str, Value],
    result: Result,
    surroundings: Surroundings,
) -> Report:
    """Add the surroundings to a result."""
    return Report(
        name=name,
        question=question,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        partial=result.stopped_by is not None,
        machine=surroundings.machine,
        versions=surroundings.versions,
        commit=surroundings.commit,
        settings=surroundings.settings,
        parameters=parameters,
        figures=result.figures,
        series=result.series,
        notes=result.notes,
    )
