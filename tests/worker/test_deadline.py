"""The watch over a session's deadline."""

import threading
import time
from collections.abc import Iterator

import pytest

from rota.worker.deadline import Deadline
from tests.fixtures.workers import LONG

PATIENCE = 0.2


class Watched:
    """A deadline, and when it has passed."""

    def __init__(self) -> None:
        self.passed = threading.Event()
        self.at = 0.0
        self.deadline = Deadline(self._pass, PATIENCE)
        self.deadline.start()

    def _pass(self) -> None:
        self.at = time.monotonic()
        self.passed.set()


@pytest.fixture
def watched() -> Iterator[Watched]:
    """A watch that is stopped at the end."""
    watched = Watched()
    yield watched
    watched.deadline.stop()


def test_a_try_that_hangs(watched: Watched) -> None:
    """The deadline passes while the worker waits for an answer."""
    now = time.monotonic()
    watched.deadline.set(now + 2 * PATIENCE)
    watched.deadline.begin()
    assert watched.passed.wait(LONG)
    assert watched.at >= now + 2 * PATIENCE


def test_an_answer_in_time(watched: Watched) -> None:
    """A deadline that an answer has put off does not pass before the new one."""
    now = time.monotonic()
    watched.deadline.set(now + 2 * PATIENCE)
    watched.deadline.begin()
    watched.deadline.set(now + 4 * PATIENCE)
    watched.deadline.end()
    watched.deadline.begin()
    assert watched.passed.wait(LONG)
    assert watched.at >= now + 4 * PATIENCE


def test_after_a_freeze(watched: Watched) -> None:
    """Where the deadline has passed already, the first try gets its time."""
    now = time.monotonic()
    watched.deadline.set(now - 10)
    watched.deadline.begin()
    assert watched.passed.wait(LONG)
    assert watched.at >= now + PATIENCE


def test_tries_that_fail(watched: Watched) -> None:
    """However many have failed, the time counts from the first one."""
    watched.deadline.set(time.monotonic())
    tries = 0
    while not watched.passed.wait(PATIENCE / 10):
        watched.deadline.begin()
        tries += 1
        assert tries < 1000
    assert tries > 1


def test_no_try_under_way(watched: Watched) -> None:
    """A worker that was frozen has not lost its session before it has asked."""
    watched.deadline.begin()
    watched.deadline.end()
    watched.deadline.set(time.monotonic() - 10)
    assert not watched.passed.wait(2 * PATIENCE)
    watched.deadline.begin()
    assert watched.passed.wait(LONG)


def test_without_a_session(watched: Watched) -> None:
    """While there is none, nothing passes; nor does it twice."""
    watched.deadline.begin()
    watched.deadline.set(time.monotonic() - 10)
    assert watched.passed.wait(LONG)
    watched.passed.clear()
    assert not watched.passed.wait(2 * PATIENCE)
