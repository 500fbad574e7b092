"""Figures as tables, for the terminal and for the page."""

from collections.abc import Mapping
from dataclasses import dataclass

from rota.measure.reports.report import Figures, Report, Value

WIDEST = 6
"""Runs side by side at most; more stand below each other, with the figures side by side."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first column names the rows."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(figures: Figures, title: str = "") -> list[Grid]:
    """One table of the plain figures, then those of each group.

    Groups with the same names in them, such as the runs of one benchmark, become one table.
    """
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping)}
    groups = {name: value for name, value in figures.items() if isinstance(value, Mapping)}
    found = []
    if plain:
        found.append(Grid(title, ("figure", "value"), _pairs(plain)))
    alike = _alike(groups)
    if alike:
        found.append(_side_by_side(title, alike))
    else:
        for name, group in groups.items():
            found += grids(group, f"{title}: {words(name)}" if title else words(name))
    return found


def surroundings(report: Report) -> list[Grid]:
    """Machine, versions, settings and parameters."""
    machine = {"when": report.when, "commit": report.commit, **report.versions, **report.machine}
    return [
        Grid("parameters", ("parameter", "value"), _pairs(report.parameters)),
        Grid("machine and versions", ("", "value"), _pairs(machine)),
        Grid("settings of the database", ("setting", "value"), tuple(report.settings.items())),
    ]


def words(name: str) -> str:
    """A figure's name for people."""
    return name.replace("_", " ")


def shown(value: Value) -> str:
    """A value for people."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,}"
        case _:
            return str(value)


def _pairs(figures: Mapping[str, Value]) -> tuple[tuple[str, ...], ...]:
    return tuple((words(name), shown(value)) for name, value in figures.items())


def _alike(groups: Mapping[str, Figures]) -> dict[str, dict[str, Value]]:
    """The groups, if all of them hold plain figures under the same names."""
    found: dict[str, dict[str, Value]] = {}
    for name, group in groups.items():
        found[name] = {key: value for key, value in group.items() if not isinstance(value, Mapping)}
        if len(found[name]) < len(group):
            return {}
    names = {tuple(group) for group in found.values()}
    return found if len(found) > 1 and len(names) == 1 else {}


def _side_by_side(title: str, groups: dict[str, dict[str, Value]]) -> Grid:
    names = list(next(iter(groups.values())))
    if len(groups) > WIDEST:
        rows = tuple(
            (words(name), *(shown(group[key]) for key in names)) for name, group in groups.items()
        )
        return Grid(title, ("run", *map(words, names)), rows)
    rows = tuple((words(key), *(shown(group[key]) for group in groups.values())) for key in names)
    return Grid(title, ("figure", *map(words, groups)), rows)
