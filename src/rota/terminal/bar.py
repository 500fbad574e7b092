"""A progress bar for commands that take long."""

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.terminal.progress import Progress


@contextlib.contextmanager
def bar() -> "Iterator[Progress]":
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from rota.terminal.progress import Silent, about

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Silent()
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as shown:
        line = shown.add_task("", total=None)

        class Bar:
            def expect(self, seconds: float) -> None:
                shown.console.print(f"This takes about {about(seconds)}.", highlight=False)

            def begin(self, what: str, total: float) -> None:
                shown.reset(line, description=what, total=round(total))

            def at(self, done: float) -> None:
                shown.update(line, completed=int(done))

        yield Bar()
