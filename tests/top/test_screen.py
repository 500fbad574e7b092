"""The screen, with real data, through textual's own pilot."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rota import Rota
from rota.model.job import SessionInfo
from rota.store.connections import Connection
from rota.store.opening import open_store
from rota.store.protocol import Store
from rota.top.dialogs import Help, Sure
from rota.top.grid import Grid
from rota.top.looker import Eye, Looker
from rota.top.screen import NO_QUEUES, NO_WORKERS, Top
from tests.fixtures.workers import working
from tests.store.factories import claim, enqueue, open_session
from tests.top.conftest import Outage

pytestmark = pytest.mark.asyncio


class Screen:
    """A view under test.

    Attributes:
        app: The view.
        pilot: Presses the keys.
    """

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    def line(self, name: str) -> str:
        """What a line shows; "" if it is hidden."""
        line = self.app.screen_stack[0].query_one(f"#{name}", Static)
        return str(line.visual) if line.display else ""

    def grid(self, name: str = "queues") -> list[list[str]]:
        """The cells of a table, without the blanks around them."""
        grid = self.app.screen_stack[0].query_one(f"#{name}", Grid)
        return [
            [str(cell).strip() for cell in grid.get_row_at(row)] for row in range(grid.row_count)
        ]

    def names(self) -> list[str]:
        """The queues that are shown."""
        return [row[0] for row in self.grid()]

    async def until(self, true: Callable[[], Any]) -> None:
        """Wait until something is so."""
        deadline = monotonic() + 8
        while not true():
            assert monotonic() < deadline, self.text()
            await self.pilot.pause(0.005)

    async def press(self, *keys: str) -> None:
        """Press keys, and let them take effect."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def text(self) -> str:
        """The whole screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)


@asynccontextmanager
async def watching(
    url: str, *, size: tuple[int, int] = (120, 30), every: float = 0.2
) -> AsyncIterator[Screen]:
    """A view of a database that has been looked at once."""
    store = open_store(url)
    looker = Looker(Eye(store), every)
    app = Top(looker, url)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            screen = Screen(app, pilot)
            await screen.until(lambda: screen.line("foot").endswith(" s") and screen.line("sums"))
            yield screen
    finally:
        looker.stop()
        store.close()


async def test_nothing_yet(store: Store, store_url: str) -> None:
    """Without queues and workers it says so, and what to do."""
    assert store.name in store_url
    async with watching(store_url) as screen:
        assert screen.line("empty") == NO_QUEUES
        assert screen.line("workers-head") == NO_WORKERS
        assert screen.line("sums").startswith("0 queues")
        await screen.press("p")
        assert not isinstance(screen.app.screen, Sure)


async def test_queues_and_workers(store: Store, store_url: str, connection: Connection) -> None:
    """Queues with their counts, workers with what they hold."""
    enqueue(store, connection, 5)
    enqueue(store, connection, 2, queue="mail", delay=60.0)
    claim(store, connection, open_session(store, connection), 2)
    async with watching(store_url) as screen:
        default, mail = screen.grid()
        assert default[:7] == ["default", "3", "2", "0", "0", "0", "0"]
        assert mail[:7] == ["mail", "0", "0", "2", "0", "0", "0"]
        assert default[9].endswith("s")
        assert mail[9] == ""
        [worker] = screen.grid("workers")
        assert worker[:3] == ["alpha:4711", "default", "2"]
        assert screen.line("empty") == ""
        assert "looked in" in screen.line("foot")
        await screen.until(lambda: "alpha:4711" in screen.text())
        shown = screen.text()
        for word in ("available", "alpha:4711", "rota top", "q quit", "2 queues"):
            assert word in shown


async def test_it_is_alive(store: Store, store_url: str) -> None:
    """With a worker that works, totals move, rates and the worker appear."""
    assert store.name in store_url
    with Rota(store_url) as app:

        @app.task(name="nothing")
        def nothing(number: int) -> None:
            del number

        async with watching(store_url) as screen:
            with working(app):
                await screen.until(lambda: screen.grid("workers"))
                nothing.enqueue_many({"number": number} for number in range(200))
                await screen.until(lambda: screen.grid() and screen.grid()[0][5] == "200")
            # Its session ends with it.
            await screen.until(lambda: screen.line("workers-head") == NO_WORKERS)
            history = screen.app._history
            assert max(rate or 0.0 for rate in history.course("default", 6000)) > 0


async def test_pausing(store: Store, store_url: str, connection: Connection) -> None:
    """P asks; only yes pauses. The next time it resumes."""
    for name in ("default", "mail"):
        enqueue(store, connection, queue=name)

    def paused() -> list[bool]:
        return [queue.paused for queue in connection.run(store.queues())]

    async with watching(store_url) as screen:
        await screen.press("down", "p")
        assert isinstance(screen.app.screen, Sure)
        assert "Pause the queue mail?" in screen.text()
        for key in ("n", "escape"):
            await screen.press(key)
            assert not isinstance(screen.app.screen, Sure)
            await screen.press("p")
        await screen.press("y")
        await screen.until(lambda: "paused" in screen.grid()[1])
        assert paused() == [False, True]
        assert "1 paused" in screen.line("sums")
        await screen.press("p")
        assert "Resume the queue mail?" in screen.text()
        await screen.press("y")
        await screen.until(lambda: "paused" not in screen.grid()[1])
        assert paused() == [False, False]


async def test_sorting(store: Store, store_url: str, connection: Connection) -> None:
    """S sorts by the next column; the cursor stays on its queue."""
    for count, name in enumerate(("a", "b", "c"), 1):
        enqueue(store, connection, count, queue=name)
    async with watching(store_url) as screen:
        grid = screen.app.query_one("#queues", Grid)
        assert screen.names() == ["a", "b", "c"]
        assert grid.selected == "a"
        await screen.press("s")
        assert screen.names() == ["c", "b", "a"]
        assert grid.selected == "a"
        assert screen.line("sums").endswith("by available")


async def test_filtering(store: Store, store_url: str, connection: Connection) -> None:
    """/ shows queues by a part of their name; keys are letters then; Esc shows all again."""
    for name in ("mail", "paint", "squash"):
        enqueue(store, connection, queue=name)
    async with watching(store_url) as screen:
        await screen.press("slash", "q")
        assert screen.names() == ["squash"]
        await screen.press("x")
        assert screen.names() == []
        assert "No queue name contains this" in screen.line("empty")
        await screen.press("backspace", "enter", "p")
        assert isinstance(screen.app.screen, Sure)
        await screen.press("n", "escape")
        assert screen.names() == ["mail", "paint", "squash"]


async def test_help_and_quit(store: Store, store_url: str) -> None:
    """? explains, any of its keys goes back; q ends with success."""
    assert store.name in store_url
    for key in ("q", "ctrl+c"):
        async with watching(store_url) as screen:
            await screen.press("question_mark")
            assert isinstance(screen.app.screen, Help)
            assert "retries count again" in screen.text()
            await screen.press("escape")
            assert not isinstance(screen.app.screen, Help)
            await screen.press(key)
        assert screen.app.return_code == 0


async def test_an_outage(
    store: Store, store_url: str, connection: Connection, outage: Outage
) -> None:
    """A lost database is shown, the last look stays, and the view goes on by itself."""
    enqueue(store, connection)
    connection.close()
    async with watching(store_url) as screen:
        await screen.until(screen.grid)
        assert screen.line("lost") == ""
        outage.begin()
        await screen.until(lambda: "No answer for" in screen.line("lost"))
        assert screen.names() == ["default"]
        await screen.press("p", "y")
        await screen.until(lambda: "was not paused" in screen.text())
        outage.end()
        await screen.until(lambda: not screen.line("lost"))
        enqueue(store, connection, queue="later")
        await screen.until(lambda: screen.names() == ["default", "later"])


async def test_no_answer(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent database is shown as well: figures do not grow old unseen."""
    assert store.name in store_url
    async with watching(store_url, every=1000.0) as screen:
        assert screen.line("lost") == ""
        monkeypatch.setattr(screen.app, "_heard", monotonic() - 2000.0)
        screen.app._tick()
        assert screen.line("lost") == "No answer for 33m20s."


async def test_a_small_terminal(store: Store, store_url: str, connection: Connection) -> None:
    """80 by 24: all lines and figures are there, and nothing is wider than the screen."""
    for number in range(40):
        enqueue(store, connection, queue=f"tenant-{number:02}")
    open_session(store, connection)
    async with watching(store_url, size=(80, 24)) as screen:
        await screen.until(lambda: "tenant-00" in screen.text() and "alpha:4711" in screen.text())
        lines = screen.text().split("\n")
        assert len(lines) == 24
        assert all(len(line) == 80 for line in lines)
        assert "disc." in lines[2]
        assert "oldest" in lines[2]
        assert lines[23].strip().startswith("q quit")
        assert lines[23].strip().endswith(" s")
        assert "alpha:4711" in screen.text()
        await screen.press("end")
        await screen.until(lambda: "tenant-39" in screen.text())
        # The cursor stays on its queue, and in sight.
        enqueue(store, connection, queue="a-new-one")
        await screen.until(lambda: len(screen.names()) == 41)
        grid = screen.app.query_one("#queues", Grid)
        await screen.until(lambda: grid.virtual_size.height == 42)
        assert grid.selected == "tenant-39"
        await screen.until(
            lambda: 0 <= grid.cursor_row - grid.scroll_y < grid.size.height - grid.header_height
        )
        await screen.pilot.resize_terminal(30, 8)
        await screen.pilot.pause()
        assert all(len(line) == 30 for line in screen.text().split("\n"))


async def test_names_that_want_to_be_more(
    store: Store, store_url: str, connection: Connection
) -> None:
    """Names are text, not markup, and what a terminal would obey is written out."""
    info = SessionInfo("\x1b[2J[bold]", 1, ("[red]q[/]", "a\u202eb"), 600.0)
    connection.run(store.open_session(info))
    enqueue(store, connection, queue="[link=http://x]a[/]")
    enqueue(store, connection, queue="[/]")
    async with watching(store_url, size=(160, 30)) as screen:
        assert "[link=http://x]a[/]" in screen.names()
        [worker] = screen.grid("workers")
        assert worker[0] == "\\x1b[2J[bold]:1"
        assert worker[1] == "[red]q[/], a\\u202eb"
        await screen.press("p")
        assert "Pause the queue [/]?" in screen.text()
        await screen.press("y")
        await screen.until(lambda: "[/] is paused" in screen.text())


async def test_without_colour(
    store: Store, store_url: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NO_COLOR no line has a colour; with colours some have."""
    enqueue(store, connection)

    async def colours() -> set[str]:
        async with watching(store_url) as screen:
            found = set()
            for line in range(screen.app.size.height):
                widget_lines = screen.app.screen._compositor.render_strips()[line]
                for segment in widget_lines.apply_filter(
                    screen.app._filters[-1], screen.app.screen.background_colors[1]
                ):
                    style = segment.style
                    if style is not None:
                        found |= {
                            colour.name
                            for colour in (style.color, style.bgcolor)
                            if colour is not None and not colour.is_default
                        }
            return found

    assert await colours() - {"default"}
    monkeypatch.setenv("NO_COLOR", "1")
    assert await colours() == set()
