"""Questions to several databases at once, of which some may not answer.

Each question has a thread of its own. A server that is stopped, or a network that swallows
everything, can keep a connection waiting for as long as it likes; here it keeps nobody but the
thread, and is asked again once that has ended.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from rota.errors import RotaError

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that one waits for an answer."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What one database has said: the value, or why there is none."""

    value: T | None
    failure: str = ""


class Question(Generic[T]):
    """A question to one database, which is asked again and again, but not while an answer is missing."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._asked: tuple[float, Future[T]] | None = None

    @property
    def answered(self) -> bool:
        """Whether no answer is missing."""
        with self._lock:
            return self._asked is None or self._asked[1].done()

    def put(self) -> tuple[float, Future[T]]:
        """Ask, unless that is under way; since when, and what will have the answer."""
        with self._lock:
            if self._asked is None or self._asked[1].done():
                future: Future[T] = Future()
                self._asked = time.monotonic(), future
                threading.Thread(
                    target=self._run, args=(future,), name="rota-aside", daemon=True
                ).start()
            return self._asked

    def _run(self, future: "Future[T]") -> None:
        try:
            found = self._ask()
        except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
            future.set_exception(error)
        else:
            future.set_result(found)


def answers(
    questions: Mapping[str, Question[T]], patience: float = PATIENCE
) -> dict[str, Answer[T]]:
    """Ask all of them at once, and wait for each until it has had so many seconds."""
    asked = {name: question.put() for name, question in questions.items()}
    for since, future in asked.values():
        wait([future], max(0.0, since + patience - time.monotonic()))
    return {name: _answer(since, future) for name, (since, future) in asked.items()}


def _answer(since: float, future: "Future[T]") -> Answer[T]:
    if not future.done():
        return Answer(None, f"no answer for {time.monotonic() - since:.0f} seconds")
    try:
        return Answer(future.result())
    except RotaError as error:
        return Answer(None, str(error))
