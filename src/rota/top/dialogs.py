"""The questions and the help of `rota top`: boxes in front of the screen."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from rota.terminal.output import harmless

HELP = """\
q  quit                 p  pause or resume the queue
s  sort by another      /  show queues by part of their name
?  this help            Tab  to the workers and back

in/s, out/s  jobs per second that became available, that were taken by
             workers; retries count again. "paused" instead of out/s:
             workers take no jobs from the queue.
oldest       how long ago the next job to start was enqueued; for
             delayed and retried jobs their wait is included.
             "!": no living worker takes jobs from the queue.
1 min        out/s of the last minute, five seconds a bar

Workers: how many jobs they hold (some have not started), for how long
they have held the oldest, when they were last heard of ("!": too long
ago, other workers take the jobs over), how long they have been running.

Oldest transaction: keeps vacuum from removing rows of the whole
database, but does not slow claims. `rota doctor` says more.

Numbers: 123k is 123,000, 1.2M is 1,200,000."""


class Sure(ModalScreen[bool]):
    """Asks whether to pause or to resume a queue."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "yes"),
        ("n,escape,q", "dismiss(False)", "no"),
    ]

    def __init__(self, queue: str, *, paused: bool) -> None:
        super().__init__()
        self._queue = queue
        self._paused = paused

    def compose(self) -> ComposeResult:
        """The question."""
        verb, meaning = (
            ("Resume", "Workers will take its jobs again.")
            if self._paused
            else ("Pause", "Workers will take no more of its jobs; running jobs go on.")
        )
        question = Text.assemble(
            f"{verb} the queue ", (harmless(self._queue), "bold"), f"?\n{meaning}\n\n",
            ("y", "bold"), " yes   ", ("n", "bold"), " no",
        )  # fmt: skip
        with VerticalScroll(classes="box"):
            yield Static(question)


class Help(ModalScreen[None]):
    """Explains the keys and the columns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,question_mark,enter", "dismiss(None)", "close"),
    ]

    def compose(self) -> ComposeResult:
        """The text; it scrolls where it does not fit."""
        with VerticalScroll(classes="box"):
            yield Static(Text(HELP))
