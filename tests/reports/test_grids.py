"""Figures as tables."""

from rota.measure.reports.grids import Grid, grids, shown


def test_runs_stand_side_by_side() -> None:
    """Groups with the same figures are one table, with a column for each."""
    found = grids({"runs": {"one": {"rate": 1000}, "two": {"rate": 2000}}})
    assert found == [Grid("runs", ("figure", "one", "two"), (("rate", "1,000", "2,000"),))]


def test_many_runs_stand_below_each_other() -> None:
    """Too many for the width of a page become rows."""
    found = grids({"runs": {f"run {n}": {"a": n, "b": n} for n in range(7)}})
    assert [grid.headings for grid in found] == [("run", "a", "b")]
    assert len(found[0].rows) == 7


def test_groups_that_differ_are_tables_of_their_own() -> None:
    """Plain figures first, then each group under its name."""
    found = grids({"n": 1, "x": {"a": 1}, "y": {"b": {"c": 2}}})
    assert [(grid.title, grid.rows) for grid in found] == [
        ("", (("n", "1"),)), ("x", (("a", "1"),)), ("y: b", (("c", "2"),)),
    ]  # fmt: skip


def test_every_value_is_shown() -> None:
    """A missing value is a dash, not a zero."""
    assert [shown(value) for value in (None, True, 0, 1234.5, "wal")] == [
        "-", "yes", "0", "1,234.5", "wal",
    ]  # fmt: skip
