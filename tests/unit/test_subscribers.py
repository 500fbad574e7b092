"""Async subscribers without a worker: one event after another, in a thread with a loop for them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from rota import subscribers
from rota.dispatch import Events
from rota.events import Event, JobsStaged, WorkerStarted
from rota.model.job import SessionId
from tests.fixtures.workers import until


@pytest.fixture
def events() -> Iterator[Events]:
    """Events whose thread has nothing more to do when the test ends."""
    events = Events()
    yield events
    close(events)


def close(events: Events) -> None:
    """Wait until all is told."""
    if events.asynchronous is not None:
        events.asynchronous.close()


def staged(*counts: int) -> list[Event]:
    """Events that differ."""
    return [JobsStaged(count) for count in counts]


def test_in_order_and_one_at_a_time(events: Events) -> None:
    """Each subscriber gets events in order, the next once it is done; no other waits for it."""
    seen: list[Event] = []
    others: list[Event] = []
    go = threading.Event()
    at_once = 0

    async def slow(event: JobsStaged) -> None:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        while not go.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.001)
        seen.append(event)
        at_once -= 1

    async def quick(event: Event) -> None:
        others.append(event)

    events.subscribe(JobsStaged, slow)
    events.subscribe(Event, quick)
    for event in staged(*range(20)):
        events.emit(event)
    until(lambda: len(others) == 20)
    assert seen == []
    go.set()
    until(lambda: len(seen) == 20)
    assert seen == others == staged(*range(20))


def test_where_they_run(events: Events) -> None:
    """Without a worker all run in one daemon thread, not in that of the event."""
    threads: list[threading.Thread] = []

    async def listen(_event: Event) -> None:
        threads.append(threading.current_thread())

    events.subscribe(Event, listen)
    events.subscribe(JobsStaged, listen)
    events.emit(JobsStaged(1))
    close(events)
    assert {thread.name for thread in threads} == {"rota-events"}
    assert len(threads) == 2
    assert len(set(threads)) == 1
    assert threads[0].daemon


class Listener:
    """An object whose call is async."""

    def __init__(self, seen: list[Event]) -> None:
        self.seen = seen

    async def __call__(self, event: Event) -> None:
        self.seen.append(event)

    async def listen(self, event: Event, more: int = 0) -> None:
        """As a method."""
        del more
        self.seen.append(event)


@pytest.mark.parametrize(
    "kind",
    [
        lambda listener: listener,
        lambda listener: listener.listen,
        lambda listener: partial(listener.listen, more=1),
    ],
    ids=["object", "method", "partial"],
)
def test_all_that_is_async(events: Events, kind: Callable[[Listener], Any]) -> None:
    """Methods, partials and objects with an async call are also awaited, until they are unsubscribed."""
    seen: list[Event] = []
    end = events.subscribe(JobsStaged, kind(Listener(seen)))
    assert events.wanted(JobsStaged)
    events.emit(JobsStaged(1))
    events.emit(WorkerStarted(SessionId(1), ()))
    end()
    events.emit(JobsStaged(2))
    close(events)
    assert seen == staged(1)
    assert not events.wanted(JobsStaged)


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
def test_one_that_raises(
    events: Events, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    """It is logged, and called with the next event."""
    seen: list[Event] = []

    async def listen(event: JobsStaged) -> None:
        seen.append(event)
        if event.count == 1:
            raise error("oh")

    events.subscribe(JobsStaged, listen)
    for event in staged(1, 2):
        events.emit(event)
    close(events)
    assert seen == staged(1, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "a subscriber to JobsStaged failed"
    ]


def test_the_line_is_bounded(
    events: Events, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while so many events wait is not told, and the log says so once."""
    monkeypatch.setattr(subscribers, "LONGEST", 5)
    go, began = threading.Event(), threading.Event()
    seen: list[Event] = []

    async def listen(event: JobsStaged) -> None:
        began.set()
        while not go.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.001)
        seen.append(event)

    events.subscribe(JobsStaged, listen)
    events.emit(JobsStaged(0))
    assert began.wait(20)
    for event in staged(*range(1, 10)):
        events.emit(event)
    go.set()
    close(events)
    events.emit(JobsStaged(10))
    close(events)
    assert seen == staged(0, 1, 2, 3, 4, 5, 10)
    [record] = caplog.records
    assert (
        "listen is slower than its events: 5 wait, and 1 were not delivered to it" in record.message
    )


def test_one_that_hangs(
    events: Events, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for it ends after a time; it is stopped, and called again with what comes later."""
    monkeypatch.setattr(subscribers, "PATIENCE", 0.2)
    began = threading.Event()
    seen: list[Event] = []

    async def listen(event: JobsStaged) -> None:
        seen.append(event)
        began.set()
        if event.count == 1:
            await asyncio.Event().wait()

    events.subscribe(JobsStaged, listen)
    for event in staged(1, 2, 3):
        events.emit(event)
    assert began.wait(20)
    close(events)
    assert (
        "listen took too long; it was stopped, and 2 event(s) were not delivered to it"
        in caplog.text
    )
    events.emit(JobsStaged(4))
    close(events)
    assert seen == staged(1, 4)


def test_a_worker_takes_over(events: Events) -> None:
    """What waits in the thread goes on, in order, on a starting worker's loop; back at its end."""
    seen: list[tuple[int, str]] = []
    go = threading.Event()

    async def listen(event: JobsStaged) -> None:
        seen.append((event.count, threading.current_thread().name))
        while event.count == 1 and not go.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.001)

    async def work() -> None:
        assert events.asynchronous is not None
        async with events.asynchronous.hosted():
            go.set()
            while len(seen) < 3:  # noqa: ASYNC110 - told by another loop
                await asyncio.sleep(0.001)
            events.emit(JobsStaged(4))

    events.subscribe(JobsStaged, listen)
    for event in staged(1, 2, 3):
        events.emit(event)
    until(lambda: seen)
    asyncio.run(work())
    events.emit(JobsStaged(5))
    close(events)
    assert [count for count, _ in seen] == [1, 2, 3, 4, 5]
    main = threading.current_thread().name
    assert [name for _, name in seen[2:]] == [main, main, "rota-events"]
    assert seen[0][1] == "rota-events"
