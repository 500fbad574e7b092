"""Workers of queues that are named by patterns, and of queues that do not exist."""

import asyncio

import pytest

from rota import Rota, State
from rota.events import QueueStrange
from tests.fixtures.workers import until, working

pytestmark = pytest.mark.both


@pytest.fixture
def strange(app: Rota) -> list[QueueStrange]:
    """What workers say of their queues."""
    said: list[QueueStrange] = []
    app.on(QueueStrange)(said.append)
    return said


def test_a_queue_that_comes_later(app: Rota, strange: list[QueueStrange]) -> None:
    """A worker of `mail-*` does the jobs of a queue that came after its start, within two seconds."""

    @app.task(name="send", queue="mail-default")
    async def send() -> None: ...

    with working(app, queues=("mail-*",)):
        send.enqueue().wait(timeout=5)
        handle = send.using(queue="mail-new").enqueue()
        until(lambda: handle.status is State.COMPLETED, seconds=2)
        again = send.using(queue="mail-new").enqueue()
        until(lambda: again.status is State.COMPLETED, seconds=2)
        other = send.using(queue="video").enqueue()
        send.using(queue="mail-last").enqueue().wait(timeout=5)
        assert other.status is State.AVAILABLE
    assert strange == []


def test_all_queues(app: Rota) -> None:
    """`*` means all; a worker that drains ends when all of them are empty."""

    @app.task(name="send")
    async def send() -> None: ...

    handles = [send.using(queue=f"q{number % 7}").enqueue() for number in range(50)]
    with working(app, queues=("*",), drain=True):
        until(lambda: all(handle.status is State.COMPLETED for handle in handles))


def test_a_concurrency_of_a_queue_that_a_pattern_means(app: Rota) -> None:
    """It holds for the worker of the pattern, too."""
    running = [0]
    most = [0]

    @app.task(name="work")
    async def work() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        for _ in range(5):
            await asyncio.sleep(0)  # others would run here
        running[0] -= 1

    app.queue("mail-slow", concurrency=1)
    handles = [work.using(queue="mail-slow").enqueue() for _ in range(30)]
    with working(app, queues=("mail-*",)):
        until(lambda: all(handle.status is State.COMPLETED for handle in handles))
    assert most == [1]


def test_a_misspelt_queue(
    app: Rota, strange: list[QueueStrange], caplog: pytest.LogCaptureFixture
) -> None:
    """A queue that no task names and that never had a job is told, with the nearest name."""

    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    send.using(queue="known").enqueue()
    with working(app, queues=("mial", "mail", "known", "video-*", "*")):
        until(lambda: len(strange) == 2)
    assert [(event.queue, event.nearest) for event in strange] == [
        ("mial", "mail"), ("video-*", None),
    ]  # fmt: skip
    assert "queue mial: no task here names it, and it has never had a job; did you mean mail?" in (
        caplog.text
    )
