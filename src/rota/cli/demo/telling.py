"""How the demo shows its progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rota.cli.demo.report import Report
from rota.terminal.output import harmless, on_terminal, say

QUARTER = 0.25


class Step(Protocol):
    """A step that takes a while."""

    def reached(self, done: int, extra: str = "") -> None:
        """How many of the total are done."""


class Teller(Protocol):
    """Shows what happens."""

    def note(self, text: str, *, style: str = "") -> None:
        """Show a line."""

    @contextmanager
    def step(self, what: str, total: int) -> Iterator[Step]:
        """Show the progress of a step."""
        ...

    def conclude(self, report: Report) -> None:
        """Show the result."""


class Silence:
    """For programs, which read the report."""

    def note(self, text: str, *, style: str = "") -> None:
        """Say nothing."""

    @contextmanager
    def step(self, what: str, total: int) -> Iterator[Step]:  # noqa: ARG002 - silence
        """Say nothing."""
        yield self

    def reached(self, done: int, extra: str = "") -> None:
        """Say nothing."""

    def conclude(self, report: Report) -> None:
        """Say nothing."""


class Lines:
    """For files and pipes."""

    def note(self, text: str, *, style: str = "") -> None:  # noqa: ARG002 - no colours here
        """One line, at once."""
        say(harmless(text))
        sys.stdout.flush()

    @contextmanager
    def step(self, what: str, total: int) -> Iterator[Step]:
        """A line for each quarter."""
        yield Quarters(self, what, total)

    def conclude(self, report: Report) -> None:
        """A line for each subject."""
        for subject, text, _ in report.words():
            self.note(f"{subject + ':':<10}{text}")
        self.note("Good." if report.good else "That is not right.")


class Quarters:
    """A step with a line for each quarter."""

    def __init__(self, lines: Lines, what: str, total: int) -> None:
        self._lines = lines
        self._what = what
        self._total = total
        self._told = 0

    def reached(self, done: int, extra: str = "") -> None:
        """Show each quarter once."""
        quarter = int(done / self._total / QUARTER)
        if quarter > self._told:
            self._told = quarter
            line = f"{self._what}: {done:,} of {self._total:,}"
            self._lines.note(f"{line}, {extra}" if extra else line)


class Terminal:
    """For a person: bars, colours, and a panel at the end."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)

    def note(self, text: str, *, style: str = "") -> None:
        """A line above the bar."""
        from rich.text import Text

        self._console.print(Text(harmless(text), style=style))

    @contextmanager
    def step(self, what: str, total: int) -> Iterator[Step]:
        """A bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[extra]}"),
        )  # fmt: skip
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(what, total=total, extra="")

            class Bar:
                def reached(self, done: int, extra: str = "") -> None:
                    progress.update(task, completed=done, extra=extra)

            yield Bar()

    def conclude(self, report: Report) -> None:
        """A panel."""
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 2))
        for subject, text, good in report.words():
            rows.add_row(Text(subject, style="bold"), Text(text, style="" if good else "red"))
        title, colour = ("Good", "green") if report.good else ("That is not right", "red")
        self._console.print(
            Panel(rows, title=title, border_style=colour, title_align="left", expand=False)
        )


def teller(*, as_json: bool) -> Teller:
    """The teller for this output."""
    if as_json:
        return Silence()
    return Terminal() if on_terminal() else Lines()
