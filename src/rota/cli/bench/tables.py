"""What a measurement found, as tables in the terminal."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.terminal.output import say, table

if TYPE_CHECKING:
    from rota.measure.reports.grids import Grid


def say_tables(title: str, grids: "Iterable[Grid]", notes: Iterable[str]) -> None:
    """Print a title, the tables, and notes on how to read them."""
    say(title, bold=True)
    for grid in grids:
        say()
        if grid.title:
            say(grid.title, bold=True)
        table(grid.headings, grid.rows, nothing="nothing")
    for note in notes:
        say()
        say(note, dim=True)
