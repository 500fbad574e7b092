"""What commands print: tables for people on a terminal, tabs in a pipe, JSON for programs.

Names, errors and args come from others, and may hold what a terminal obeys: escape sequences,
characters that turn the writing direction round. `harmless` makes these visible.
"""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

Cell = str | int | None


def harmless(text: str, *, keep: str = "") -> str:
    """The text with everything that does not print written as an escape, but for `keep`."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode()
        for one in text
    )


def harmless_lines(text: str) -> str:
    """`harmless` for text of several lines."""
    return harmless(text.expandtabs(), keep="\n")


def on_terminal() -> bool:
    """Whether a person is looking."""
    return sys.stdout.isatty()


def say(line: str = "", **style: Any) -> None:
    """Print a line of Rota's own words; styles show on a terminal only."""
    click.echo(click.style(line, **style) if any(style.values()) else line)


def say_json(value: object) -> None:
    """Print one JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def moment(at: datetime | None) -> str:
    """A moment in the time zone of whoever looks."""
    return "" if at is None else at.astimezone().isoformat(" ", "seconds")


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, nothing: str) -> None:
    """Print rows under headings; numbers are aligned to the right. `nothing`: when there are none."""
    if on_terminal():
        if rows:
            _rich_table(headings, rows)
        else:
            say(nothing)
        return
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *texts, strict=True)]
    for line in (headings, *texts):
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        click.echo("\t".join(padded).rstrip(" "))


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        right = any(isinstance(row[number], int) for row in rows)
        shown.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_text(cell), style=STYLES.get(str(cell), "")) for cell in row))
    Console(highlight=False).print(shown)


STYLES = {
    "running": "cyan",
    "retryable": "yellow",
    "completed": "green",
    "discarded": "red",
    "cancelled": "dim",
    "yes": "yellow",
}
"""Words that stand out, where they are all there is in a cell."""


def _text(cell: Cell) -> str:
    return "" if cell is None else harmless(str(cell))
