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
    State.BLOCKED: "block.",
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


class Placed(NamedTuple):
    """A column in its place: its number, its heading, and its width."""

    number: int
    title: str
    width: int


def states(ranks: Mapping[State, int]) -> list[Column]:
    """A column for each of these states."""
    return [Column(state.value, SHORT[state], rank, spare=True) for state, rank in ranks.items()]


def fitted(columns: Sequence[Column], texts: Sequence[Sequence[str]], width: int) -> list[Placed]:
    """As many columns as fit into so many characters, and how wide each is."""
    from rich.cells import cell_len

    needed = [max((cell_len(row[n]) for row in texts), default=0) for n in range(len(columns))]
    shown = [
        n for n, one in enumerate(columns)
        if not one.spare or any(row[n] not in {"", "0"} for row in texts)
    ]  # fmt: skip

    def total(*, short: bool) -> int:
        return sum(sizes(short=short).values()) + GAP * (len(shown) - 1)

    def sizes(*, short: bool) -> dict[int, int]:
        return {
            n: max(
                cell_len((short and columns[n].short) or columns[n].title),
                min(needed[n], ROOM) if columns[n].prose else needed[n],
            )
            for n in shown
        }

    short = total(short=False) > width
    ranked = sorted((n for n in shown if columns[n].rank), key=lambda n: columns[n].rank)
    while ranked and total(short=short) > width:
        shown.remove(ranked.pop())
    left = max(0, width - total(short=short))
    return [
        Placed(
            n,
            (short and columns[n].short) or columns[n].title,
            max(size, min(needed[n], size + left)) if columns[n].prose else size,
        )
        for n, size in sizes(short=short).items()
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
