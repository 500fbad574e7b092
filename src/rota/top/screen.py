"""The terminal: shows what the looker reports, by textual."""

import time
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, Static

from rota.doctor.finding import Severity
from rota.model.states import State
from rota.terminal.output import harmless
from rota.top.columns import QUEUES, WORKERS
from rota.top.dialogs import Help, Sure
from rota.top.figures import age, number, rate
from rota.top.grid import Grid
from rota.top.history import History
from rota.top.horizon import notice
from rota.top.looker import Broken, Looker, Lost, News, Paused
from rota.top.queues import QueueRow, arranged, next_sort, queue_rows, sums
from rota.top.snapshot import Snapshot

COLOURS = {
    Severity.OK: "green",
    Severity.NOTE: "cyan",
    Severity.WARNING: "bold yellow",
    Severity.CRITICAL: "bold red",
}

TICK = 1.0
"""Seconds between two looks at the clock."""

LATE = 3.0
"""Seconds that an answer may be late before the screen says so."""

MILLISECOND = 0.001
EXACT = 10
"""Milliseconds below which a tenth is shown."""


class Arrived(Message):
    """News from the looker."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Top(App[None]):
    """The live view.

    Args:
        looker: Started here, and stopped by the caller.
        address: The database's URL without its password.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #head, #sums, #lost, #empty, #workers-head, #horizon, #foot { height: 1; padding: 0 1; }
    #head { text-style: bold reverse; }
    #lost { display: none; height: auto; max-height: 3; color: ansi_red; text-style: bold; }
    #empty { display: none; height: auto; }
    Grid { scrollbar-size-vertical: 1; overflow-x: hidden; margin: 0 1; }
    Grid, Grid:focus { background: ansi_default; background-tint: ansi_default 0%; }
    Grid > .datatable--header { background: ansi_default; color: ansi_default;
                                text-style: underline; }
    Grid > .datatable--cursor { background: ansi_default; color: ansi_default; text-style: none; }
    Grid:focus > .datatable--cursor { background: ansi_default; color: ansi_default;
                                      text-style: reverse; }
    #queues { height: 1fr; min-height: 4; }
    #workers { max-height: 35%; }
    #workers-head { margin-top: 1; text-style: bold; }
    #horizon { height: auto; max-height: 2; }
    #filter-line { display: none; height: 1; padding: 0 1; }
    #filter-line Static { width: 2; }
    #filter, #filter:focus { width: 1fr; height: 1; border: none; padding: 0;
                             background: ansi_default; background-tint: ansi_default 0%; }
    Sure, Help { align: center middle; }
    .box { width: 76; max-width: 100%; height: auto; max-height: 100%; border: round ansi_cyan;
           padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q,ctrl+c", "quit", "quit"),
        ("p", "pause", "pause"),
        ("s", "sort", "sort"),
        ("slash", "filter", "filter"),
        ("question_mark", "help", "help"),
        ("escape", "unfilter", "all queues"),
    ]

    def __init__(self, looker: Looker, address: str) -> None:
        # The terminal's own colours, and with NO_COLOR none at all.
        super().__init__(ansi_color=True)
        self.title = "rota top"
        self.theme = "ansi-dark"
        self._looker = looker
        self._address = address
        self._history = History()
        self._snapshot: Snapshot | None = None
        self._rows: list[QueueRow] = []
        self._lost = ""
        self._heard = time.monotonic()
        self._sort = "name"
        self._wanted = ""
        self._filled = False

    def compose(self) -> ComposeResult:
        """The screen from top to bottom."""
        yield Static(id="head")
        yield Static(id="sums")
        yield Static(id="lost")
        yield Static(id="empty")
        yield Grid(id="queues")
        yield Static(id="workers-head")
        yield Grid(id="workers")
        yield Static(id="horizon")
        with Horizontal(id="filter-line"):
            yield Static("/")
            yield Input(id="filter", placeholder="part of a queue name; Esc shows all")
        yield Static(id="foot")

    def on_mount(self) -> None:
        """Begin to look."""
        self.query_one("#queues").focus()
        self.set_interval(TICK, self._tick)
        self._filled = True
        self._draw()
        self._looker.start(lambda news: self.post_message(Arrived(news)))

    # What comes in ---------------------------------------------------------------------------

    @on(Arrived)
    def _arrived(self, message: Arrived) -> None:
        match message.news:
            case Snapshot() as snapshot:
                self._snapshot, self._lost = snapshot, ""
                self._heard = time.monotonic()
                self._history.add(snapshot.moment, snapshot.queues)
                self._rows = queue_rows(snapshot, self._history)
            case Lost(reason):
                self._lost = reason
            case Paused() as done:
                self._tell(done)
            case Broken(error):
                raise error
        self._draw()

    def _tell(self, done: Paused) -> None:
        name, verb = harmless(done.queue), "paused" if done.paused else "resumed"
        if done.failure:
            said = f"{name} was not {verb}: {harmless(done.failure)}"
            self.notify(said, severity="error", markup=False)
        elif done.changed:
            self.notify(f"{name} is {verb}", markup=False)
        else:
            self.notify(f"{name} was already {verb}", markup=False)

    def on_resize(self, _: Resize) -> None:
        """Draw again: other columns may fit."""
        if self._filled:
            self._draw()

    @on(Input.Changed, "#filter")
    def _filtered(self, message: Input.Changed) -> None:
        self._wanted = message.value.strip()
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_is_done(self) -> None:
        self.query_one("#queues").focus()
        self.query_one("#filter-line").display = bool(self._wanted)

    # Keys ------------------------------------------------------------------------------------

    async def action_pause(self) -> None:
        """Ask, then pause or resume the queue under the cursor."""
        selected = self.query_one("#queues", Grid).selected
        paused = {row.name: row.paused for row in self._rows}.get(selected or "")
        if selected is None or paused is None:
            return

        def answered(sure: bool | None) -> None:  # noqa: FBT001 - textual's
            if sure:
                self._looker.pause(selected, paused=not paused)

        await self.push_screen(Sure(selected, paused=paused), answered)

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._sort = next_sort(self._sort)
        self._draw()

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        self.query_one("#filter-line").display = True
        self.query_one("#filter").focus()

    def action_unfilter(self) -> None:
        """Show all queues again."""
        self.query_one("#filter", Input).value = ""
        self.query_one("#filter-line").display = False
        self.query_one("#queues").focus()

    async def action_help(self) -> None:
        """Explain keys and columns."""
        await self.push_screen(Help())

    # What is shown ---------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._gone():
            return
        self._draw_head()
        self._draw_lost()

    def _gone(self) -> bool:
        """Whether the screen is being taken down, so that news come too late."""
        return not self.screen_stack or not self.screen_stack[0].query("#foot")

    def _draw(self) -> None:
        if self._gone():
            return
        self._draw_head()
        self._draw_lost()
        self._draw_foot()
        if (snapshot := self._snapshot) is None:
            return
        width = max(20, self.size.width - 3)  # margins and the scroll bar
        shown = arranged(self._rows, self._sort, self._wanted)
        base = self.screen_stack[0]
        base.query_one("#queues", Grid).show(
            QUEUES, [(row.name, row) for row in shown], width=width
        )
        base.query_one("#workers", Grid).show(
            WORKERS, [(str(worker.id), worker) for worker in snapshot.workers], width=width
        )
        self._draw_sums()
        empty = base.query_one("#empty", Static)
        empty.display = not shown
        empty.update(
            Text("No queue name contains this; Esc shows all." if self._rows else NO_QUEUES)
        )
        workers = base.query_one("#workers", Grid)
        workers.display = bool(snapshot.workers)
        # Not `auto`: that is the height of the rows before the last look.
        workers.styles.height = len(snapshot.workers) + workers.header_height
        base.query_one("#workers-head", Static).update(
            Text(f"Workers: {len(snapshot.workers)}" if snapshot.workers else NO_WORKERS)
        )
        said = notice(snapshot.horizon)
        base.query_one("#horizon", Static).update(
            Text(harmless(said.text), style=COLOURS[said.severity])
        )

    def _draw_head(self) -> None:
        product = f"{harmless(self._snapshot.product)}  " if self._snapshot else ""
        clock = f"{datetime.now().astimezone():%H:%M:%S}"
        self._line("head", f"rota top  {product}{harmless(self._address)}", clock)

    def _draw_sums(self) -> None:
        total = sums(self._rows)
        queues = f"{total.queues} queue{'' if total.queues == 1 else 's'}"
        parts = [queues]
        if total.rates is not None:
            parts.append(f"in {rate(total.rates.appended)}/s")
            parts.append(f"out {rate(total.rates.claimed)}/s")
        parts += [
            f"{number(total.counts[state])} {state}"
            for state in (State.AVAILABLE, State.DISCARDED, State.RUNNING)
        ]
        if total.paused:
            parts.append(f"{total.paused} paused")
        if total.unserved:
            parts.append(f"{total.unserved} without a worker")
        sort = f"by {self._sort}"
        while len(parts) > 1 and len(" · ".join(parts)) > self.size.width - len(sort) - 3:
            parts.pop()
        self._line("sums", " · ".join(parts), sort)

    def _draw_lost(self) -> None:
        line = self.screen_stack[0].query_one("#lost", Static)
        silent = time.monotonic() - self._heard
        late = silent > self._looker.every + LATE
        partly = self._snapshot.lost if self._snapshot else ""
        line.display = bool(self._lost or partly) or late
        if partly and not self._lost and not late:
            line.update(Text(harmless(partly)))
            return
        since = f"No answer for {age(silent)}" if self._snapshot else "No answer yet"
        line.update(Text(f"{since}: {harmless(self._lost)}" if self._lost else f"{since}."))

    def _draw_foot(self) -> None:
        took = ""
        if self._snapshot is not None:
            milliseconds = self._snapshot.took / MILLISECOND
            exact = f"{milliseconds:.1f}" if milliseconds < EXACT else f"{milliseconds:.0f}"
            took = f"looked in {exact} ms, every {self._looker.every:g} s"
        self._line("foot", "q quit  p pause  s sort  / filter  ? help", took)

    def _line(self, name: str, left: str, right: str) -> None:
        """A text at the left of a line and a text at its right; the left is cut first."""
        text = Text(no_wrap=True, overflow="ellipsis")
        room = self.size.width - 2 - len(right)
        text.append(left)
        text.truncate(max(0, room - 1), overflow="ellipsis", pad=True)
        text.append(" " + right)
        self.screen_stack[0].query_one(f"#{name}", Static).update(text)


NO_QUEUES = "No queues yet: they appear with their first job."
NO_WORKERS = "No workers. Start one: rota worker MODULE:APP"
