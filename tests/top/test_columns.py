"""What fits on the screen."""

from typing import Any

import pytest
from rich.cells import cell_len

from rota.model.states import State
from rota.top.columns import QUEUES, WORKERS, Cell, Column, fitted, padded
from rota.top.history import History
from rota.top.queues import queue_rows
from tests.top.made import lane, queue, snapshot, worker


def titles(width: int) -> list[str]:
    """The headings in so many characters."""
    return [column.title for column in fitted(QUEUES, width)]


def test_wide() -> None:
    """Where there is room, every column has its whole heading, a state its name."""
    assert titles(120) == [
        "queue", "available", "running", "scheduled", "retryable", "completed", "discarded",
        "in/s", "out/s", "oldest", "out, 1 min",
    ]  # fmt: skip
    assert set(titles(120)) >= {*map(str, State)} - {"cancelled"}


def test_eighty() -> None:
    """On the usual small terminal all figures are there; only the minute is left out."""
    assert titles(77) == [
        "queue",
        "avail.",
        "run.",
        "sched.",
        "retry.",
        "compl.",
        "disc.",
        "in/s",
        "out/s",
        "oldest",
    ]
    assert "1 min" in titles(90)


@pytest.mark.parametrize(("width", "kept"), [(40, "avail. run. out/s"), (21, "avail."), (9, "")])
def test_narrow(width: int, kept: str) -> None:
    """The most important columns stay longest."""
    assert titles(width) == ["queue", *kept.split()]


@pytest.mark.parametrize("width", range(1, 160))
@pytest.mark.parametrize("columns", [QUEUES, WORKERS])
def test_it_always_fits(columns: tuple[Column[Any], ...], width: int) -> None:
    """No line is longer than the screen, headings and figures fit into their columns."""
    shown = fitted(columns, width)
    names = sum(not fit.column.figures for fit in shown)
    assert sum(fit.width for fit in shown) <= max(width, names)
    for fit in shown:
        if fit.column.figures:
            assert cell_len(fit.title) < fit.width


def test_cells() -> None:
    """Zeros are dim, what is wrong stands out; a paused queue says so in words.

    A queue without a worker says so by a mark.
    """
    history = History()
    history.add(0.0, [queue()])
    looked = queue("mail", 10, 20, available=123_456, discarded=2)
    history.add(1.0, [looked])
    lanes, workers = (lane("mail", 75.0),), (worker(queues=("mail",)),)
    [row] = queue_rows(snapshot(looked, lanes=lanes, workers=workers), history)
    cells = {column.title: column.cell(row) for column in QUEUES}
    assert cells["available"] == Cell("123k")
    assert cells["running"] == Cell("0", "dim")
    assert cells["discarded"] == Cell("2", "red")
    assert (cells["in/s"].text, cells["out/s"].text, cells["oldest"].text) == ("10", "20", "1m15s")
    [row] = queue_rows(snapshot(looked, lanes=lanes), history)
    cells = {column.title: column.cell(row) for column in QUEUES}
    assert cells["oldest"] == Cell("1m!", "bold red")
    [row] = queue_rows(snapshot(queue(paused=True)), History())
    assert {column.title: column.cell(row) for column in QUEUES}["out/s"].text == "paused"


def test_silent_workers() -> None:
    """A worker that is past its time is marked, also without colour."""
    for silent, text in ((1.0, "1s"), (15.0, "15s"), (16.0, "16s!")):
        cells = {column.title: column.cell(worker(silent=silent)) for column in WORKERS}
        assert cells["heard"].text == text
    assert cells["since"].text == "1h01m"
    assert cells["queues"].text == "default, mail"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mail", "mail      "),
        ("a name that is too long", "a name th…"),
        ("名前名前名前名前", "名前名前 …"),
        ("\x1b[31mred", "\\x1b[31mr…"),
        ("a\u202eb", "a\\u202eb  "),
        ("[bold]", "[bold]    "),
    ],
)
def test_padded(text: str, shown: str) -> None:
    """Exactly as wide as asked for, and nothing in it that a terminal obeys."""
    assert padded(text, 10) == shown
    assert cell_len(shown) == 10
    assert padded(text, 0) == ""
    assert padded("7", 3, right=True) == "  7"
