"""The columns of queues and workers: as many as fit into the terminal, texts cut to their width."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from rota.model.states import State
from rota.store.health import SessionFacts
from rota.terminal import tables
from rota.terminal.output import harmless
from rota.terminal.tables import SHORT, fit
from rota.top.figures import age, number, rate, roughly, sparkline
from rota.top.queues import POINTS, QueueRow

Row = TypeVar("Row")

FIGURE = 6
"""Characters of a figure."""

NARROWEST = 14
"""Characters of a name and the blank after it, if at all possible."""


class Cell(NamedTuple):
    """A text and its style, in rich's words."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column.

    Attributes:
        title: Its heading; `short` where there is no room for it.
        rank: Columns with a high rank are the first to be left out.
        width: Characters that its texts need; 0 for names, which share what is left.
    """

    title: str
    short: str
    rank: int
    cell: Callable[[Row], Cell]
    width: int = FIGURE

    @property
    def figures(self) -> bool:
        """Whether it is aligned to the right."""
        return self.width > 0


class Fitted(NamedTuple, Generic[Row]):
    """A column as it is shown; `width` includes a blank on its left, but for names."""

    column: Column[Row]
    title: str
    width: int


def fitted(columns: Sequence[Column[Row]], width: int) -> list[Fitted[Row]]:
    """As many columns as fit into so many characters; names share what is left."""
    headings = {
        n: tables.Column(column.title, column.short, column.rank)
        for n, column in enumerate(columns)
    }
    least = {n: column.width or NARROWEST - 1 for n, column in enumerate(columns)}
    shown = [(columns[n], title, size + 1) for n, title, size in fit(headings, least, width, gap=1)]
    names = sum(not column.figures for column, _, _ in shown)
    left = width - sum(size for column, _, size in shown if column.figures)
    return [
        Fitted(column, title, size if column.figures else max(1, left // names))
        for column, title, size in shown
    ]


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text that a terminal does not obey, in exactly so many characters."""
    text = harmless(text)
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank


# Queues ---------------------------------------------------------------------------------------


def _jobs(state: State, rank: int, style: str = "") -> Column[QueueRow]:
    def cell(row: QueueRow) -> Cell:
        jobs = row.counts.get(state, 0)
        return Cell(number(jobs), style if jobs else "dim")

    return Column(state.value, SHORT[state], rank, cell)


def _came(row: QueueRow) -> Cell:
    return Cell(
        rate(row.rates.appended) if row.rates else "", _dim(row.rates and row.rates.appended)
    )


def _went(row: QueueRow) -> Cell:
    if row.paused:
        return Cell("paused", "bold yellow")
    return Cell(rate(row.rates.claimed) if row.rates else "", _dim(row.rates and row.rates.claimed))


def _oldest(row: QueueRow) -> Cell:
    if row.waits_in_vain:
        return Cell(f"{roughly(row.oldest)}!", "bold red")
    return Cell(age(row.oldest))


def _dim(value: float | None) -> str:
    return "" if value else "dim"


QUEUES: tuple[Column[QueueRow], ...] = (
    Column("queue", "queue", 0, lambda row: Cell(row.name, "bold"), width=0),
    _jobs(State.AVAILABLE, 1),
    _jobs(State.RUNNING, 2, "cyan"),
    _jobs(State.SCHEDULED, 8),
    _jobs(State.RETRYABLE, 6, "yellow"),
    _jobs(State.COMPLETED, 9),
    _jobs(State.DISCARDED, 5, "red"),
    Column("in/s", "in/s", 7, _came),
    Column("out/s", "out/s", 3, _went),
    Column("oldest", "oldest", 4, _oldest),
    Column("out, 1 min", "1 min", 10, lambda row: Cell(sparkline(row.course), "green"), POINTS),
)

# Workers --------------------------------------------------------------------------------------


def _heard(row: SessionFacts) -> Cell:
    if row.silent > row.timeout:
        return Cell(f"{age(row.silent)}!", "bold red")
    return Cell(age(row.silent))


WORKERS: tuple[Column[SessionFacts], ...] = (
    Column("worker", "worker", 0, lambda row: Cell(row.worker, "bold"), width=0),
    Column("queues", "queues", 0, lambda row: Cell(", ".join(row.queues)), width=0),
    Column(
        "jobs", "jobs", 1, lambda row: Cell(number(row.leased), "cyan" if row.leased else "dim")
    ),
    Column("oldest", "oldest", 3, lambda row: Cell(age(row.oldest_lease))),
    Column("heard", "heard", 2, _heard, FIGURE + 1),
    Column("since", "since", 4, lambda row: Cell(age(row.open))),
)
