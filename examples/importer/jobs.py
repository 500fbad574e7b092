"""A file of prices goes into the catalogue: all of its lines, or none.

The file is read in parts, each by a job of its own. When all parts are in, one job adds up what
came; if one has failed, another job takes out again what the others have stored. Either way a
report follows.
"""

import csv
from itertools import islice
from pathlib import Path

from rota import Context, FlowHandle, Rota

rota = Rota()

PART = 1000
"""Lines that one job stores."""

TABLE = "CREATE TABLE IF NOT EXISTS price (file text, article text, cents integer)"


def start(file: Path, part: int = PART) -> FlowHandle:
    """Begin to import a file: its table and the flow with all its jobs, together or not at all."""
    with file.open() as lines:
        count = sum(1 for _ in lines)
    parts = [(str(file), first, first + part) for first in range(0, count, part)]
    with rota.transaction() as tx:
        tx.execute(TABLE)
        with rota.flow("import", conn=tx) as f:
            stored = f.map(store, parts, name="store")
            total = f.add(add_up, stored.results, name="add up")
            undone = f.add(undo, str(file), after=[stored, total], on="failed", name="undo")
            f.add(
                report, str(file), stored.results,
                after=[total, undone], on="finished", name="report",
            )  # fmt: skip
    return f.handle


@rota.task(discard_on=(ValueError,))
def store(ctx: Context, file: str, first: int, last: int) -> int:
    """Store the lines of one part, in one commit with the end of the job; returns their number."""
    with Path(file).open() as lines:
        rows = list(csv.reader(islice(lines, first, last)))
    with ctx.transaction() as tx:
        for number, (article, price) in enumerate(rows, first + 1):
            values = [file, article, cents(price, number)]
            tx.execute("INSERT INTO price VALUES (?, ?, ?)", values)
        tx.result(len(rows))  # for the nodes that are given it
    return len(rows)


@rota.task
def add_up(stored: list[int]) -> int:
    """How many lines all parts have; where this runs, all of them are there."""
    return sum(stored)


@rota.task
def undo(ctx: Context, file: str) -> None:
    """Take out what the parts without a mistake have stored."""
    with ctx.transaction() as tx:
        tx.execute("DELETE FROM price WHERE file = ?", [file])


@rota.task
def report(file: str, stored: list[int]) -> None:
    """Say what came of it; there is a number for each part that was stored."""
    with rota.transaction() as tx:
        count, total = tx.execute(
            "SELECT count(*), coalesce(sum(cents), 0) FROM price WHERE file = ?", [file]
        ).fetchone()
    print(f"{Path(file).name}: {len(stored)} parts stored {sum(stored)} lines;")
    print(f"  the catalogue has {count} of them, {total / 100:.2f} in sum")


def cents(price: str, line: int) -> int:
    """A price as the catalogue has it.

    Raises:
        ValueError: It is no number; another attempt would not help.
    """
    try:
        return round(100 * float(price))
    except ValueError:
        message = f"line {line}: {price!r} is no price"
        raise ValueError(message) from None
