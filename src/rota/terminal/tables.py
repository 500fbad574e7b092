"""Fitting a table into a terminal without breaking a word.

A terminal that is too narrow first gets short headings, then fewer columns. Names and ids are never
cut; a table that is too wide even so runs on, and can be copied whole.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rota.model.states import State

GAP = 2
"""Blanks between two columns."""

ROOM = 24
"""Characters that a prose column gets, if it needs them, before other columns may stay."""

SHORT = {
    State.SCHEDULED: "sched.",
    State.AVAILABLE: "avail.",
    State.RUNNING: "run.",
    State.RETRYABLE: "retry.",
    State.COMPLETED: "compl.",
    State.DISCARDED: "disc.",
    State.CANCELLED: "canc.",
}
"""Headings for the states where there is little room."""


class Column(NamedTuple):
    """One column.

    Attributes:
        title: Its heading; `short` where there is little room.
        rank: Columns with a high rank are the first to be left out; those with 0 never are.
        spare: Left out where no row has anything in it but zeros.
        prose: Cut at the end of a word where there is no room for more.
    """

    title: str
    short: str = ""
    rank: int = 0
    spare: bool = False
    prose: bool = False


class Fitted(NamedTuple):
    """A column as it is shown: its number, its heading, and its width."""

    number: int
    title: str
    width: int


def states(ranks: Mapping[State, int]) -> list[Column]:
    """A column for each of these states."""
    return [Column(state.value, SHORT[state], rank, spare=True) for state, rank in ranks.items()]


def fit(
    columns: Mapping[int, Column], least: Mapping[int, int], width: int, gap: int
) -> list[Fitted]:
    """As many columns as fit into so many characters, each with a gap and of the least width.

    `columns` and `least` are by the columns' numbers.
    """
    from rich.cells import cell_len

    def sized(*, short: bool) -> list[Fitted]:
        titles = {n: (short and column.short) or column.title for n, column in columns.items()}
        return [Fitted(n, title, max(cell_len(title), least[n])) for n, title in titles.items()]

    def wide() -> bool:
        return sum(column.width + gap for column in shown) > width

    shown = sized(short=False)
    if wide():
        shown = sized(short=True)
    ranked = sorted(
        (column for column in shown if columns[column.number].rank),
        key=lambda column: columns[column.number].rank,
    )
    while ranked and wide():
        shown.remove(ranked.pop())
    return shown


def fitted(columns: Sequence[Column], texts: Sequence[Sequence[str]], width: int) -> list[Fitted]:
    """The columns of these texts that fit into so many characters; prose gets what is left."""
    from rich.cells import cell_len

    needed = [max((cell_len(row[n]) for row in texts), default=0) for n in range(len(columns))]
    used = {
        n: column for n, column in enumerate(columns)
        if not column.spare or any(row[n] not in {"", "0"} for row in texts)
    }  # fmt: skip
    least = {n: min(needed[n], ROOM) if column.prose else needed[n] for n, column in used.items()}
    shown = fit(used, least, width + GAP, GAP)
    left = max(0, width + GAP - sum(column.width + GAP for column in shown))
    return [
        column._replace(width=max(column.width, min(needed[column.number], column.width + left)))
        for column in shown
    ]


def shortened(text: str, width: int) -> str:
    """A text cut at the end of a word; a first word that is too long is cut all the same."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    head = set_cell_size(text, max(0, width - 1)).rstrip()
    if not text[len(head) :].startswith(" "):
        head = head.rpartition(" ")[0].rstrip() or head
    return f"{head}…"
