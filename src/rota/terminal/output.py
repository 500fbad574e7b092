"""What commands print: tables for people on a terminal, tabs in a pipe, JSON for programs.

Names, errors and args may hold what a terminal obeys: escape sequences, characters that turn the
writing direction round. `harmless` makes these visible.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from rota.terminal.tables import GAP, Column, fitted, shortened

if TYPE_CHECKING:
    from rich.text import Text

F = TypeVar("F", bound=Callable[..., Any])

Cell = str | int | None

STYLES = {
    "running": "cyan",
    "retryable": "yellow",
    "completed": "green",
    "discarded": "red",
    "failed": "red",
    "cancelled": "dim",
    "skipped": "dim",
    "yes": "yellow",
    "paused": "yellow",
    "undeclared": "yellow",
}
"""Words that stand out where a cell holds nothing else."""


def harmless(text: str, *, keep: str = "") -> str:
    """The text with everything that does not print written as an escape, but for `keep`."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in keep
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def harmless_lines(text: str) -> str:
    """`harmless` for text of several lines."""
    return harmless(text.expandtabs(), keep="\n")


def on_terminal() -> bool:
    """Whether a person reads the output."""
    return sys.stdout.isatty()


def say(line: str = "", **style: Any) -> None:
    """Print a line of Rota's own words; styles show on a terminal only."""
    click.echo(click.style(line, **style) if any(style.values()) else line)


DOCUMENTS: ContextVar[list[Any] | None] = ContextVar("rota_documents", default=None)
"""Where documents go that are not printed by themselves."""


@contextmanager
def collecting() -> Iterator[list[Any]]:
    """Collect in the block what `say_json` would print, and what `collect` is given."""
    documents: list[Any] = []
    token = DOCUMENTS.set(documents)
    try:
        yield documents
    finally:
        DOCUMENTS.reset(token)


def collect(value: object) -> bool:
    """Keep a document where such are collected; whether they are."""
    documents = DOCUMENTS.get()
    if documents is None:
        return False
    documents.append(msgspec.to_builtins(value))
    return True


def say_json(value: object) -> None:
    """Print one JSON document, or keep it where such are collected."""
    if not collect(value):
        click.echo(formatted(msgspec.json.encode(value).decode()))


def formatted(text: str) -> str:
    """JSON on several lines; as it is, where it cannot be read.

    SQL can store halves of surrogate pairs, and thousands of levels.
    """
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text


def moment(at: datetime | None) -> str:
    """A moment in the time zone of this machine."""
    return "" if at is None else at.astimezone().isoformat(" ", "seconds")


def brief(at: datetime | None) -> str:
    """A moment for a table: to the minute on a terminal, exact in a pipe."""
    if at is None or not on_terminal():
        return moment(at)
    local = at.astimezone()
    return (
        f"{local:%m-%d %H:%M}"
        if local.year == datetime.now(local.tzinfo).year
        else f"{local:%Y-%m-%d}"
    )


def table(
    headings: Sequence[str | Column], rows: Sequence[Sequence[Cell]], *, nothing: str
) -> None:
    """Print rows under headings; numbers are aligned to the right. `nothing` is said without rows."""
    columns = [Column(heading) if isinstance(heading, str) else heading for heading in headings]
    if not on_terminal():
        _with_tabs(columns, _texts(rows))
    elif rows:
        from rich.console import Console

        console = Console(highlight=False)
        for line in table_lines(columns, rows, console.width):
            console.print(line, soft_wrap=True)
    else:
        say(nothing)


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int
) -> "list[Text]":
    """A table for a terminal of that width: its headings, and a line for each row."""
    from rich.cells import cell_len
    from rich.text import Text

    texts = _texts(rows)
    right = {n for n in range(len(columns)) if any(isinstance(row[n], int) for row in rows)}
    shown = fitted(columns, texts, width)

    def line(cells: Sequence[str], style: str = "") -> Text:
        line = Text()
        for column, cell in zip(shown, cells, strict=True):
            text = shortened(cell, column.width) if columns[column.number].prose else cell
            blank = " " * (column.width - cell_len(text))
            line.append(" " * GAP if line else "")
            line.append(blank if column.number in right else "")
            line.append(text, style or STYLES.get(text, ""))
            line.append("" if column.number in right else blank)
        line.rstrip()
        return line

    found = [line([column.title for column in shown], "bold")]
    return found + [line([row[column.number] for column in shown]) for row in texts]


def _texts(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    return [["" if cell is None else harmless(str(cell)) for cell in row] for row in rows]


def _with_tabs(columns: Sequence[Column], texts: Sequence[Sequence[str]]) -> None:
    lines = [[column.title for column in columns], *texts]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        click.echo("\t".join(padded).rstrip(" "))


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)
