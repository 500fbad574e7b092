"""What commands that take long have in common: a bar, and an end in order."""

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rota.reports.progress import Progress


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

    from rota.reports.progress import Silent

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
            def begin(self, what: str, total: float) -> None:
                shown.reset(line, description=what, total=round(total))

            def at(self, done: float) -> None:
                shown.update(line, completed=int(done))

        yield Bar()


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Let SIGTERM, and a terminal that goes away, be like Ctrl-C: what was made is removed."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    # Windows has no SIGHUP.
    ends = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, stop) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
