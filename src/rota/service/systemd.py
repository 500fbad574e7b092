"""A thread that tells systemd how a worker is: that it has begun and stops, and its signs of life.

The thread is not the event loop's, so a handler that blocks the loop keeps no sign of life back.
The signs stop where a new process would do better (`Health.sound`): then systemd ends this one and
starts another.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rota.dispatch import Events
from rota.events import Event, SessionLost, StoreLost, StoreRecovered, WorkerStopping
from rota.service.notify import Notifier
from rota.worker.health import Health, Phase

PACE = 5.0
"""Seconds between two looks; fewer where systemd wants a sign of life more often."""

IMPATIENCE = 0.05
"""The same until the worker has begun."""

NEWS = (WorkerStopping, SessionLost, StoreLost, StoreRecovered)
"""Events after which it looks at once."""


class Systemd:
    """Tells systemd, while its block lasts, what `look` sees."""

    def __init__(self, notifier: Notifier, look: Callable[[], Health], events: Events) -> None:
        self._notifier = notifier
        self._look = look
        self._events = events
        watchdog = notifier.watchdog
        self._pace = PACE if watchdog is None else min(PACE, watchdog / 2)
        self._said: set[str] = set()
        self._status = ""
        self._news = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rota-systemd", daemon=True)

    def __enter__(self) -> Self:
        self._unsubscribe = [self._events.subscribe(kind, self._hear) for kind in NEWS]
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._ended.set()
        self._news.set()
        self._thread.join()
        self._tell(self._look())
        self._notifier.close()

    def _hear(self, _: Event) -> None:
        self._news.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            health = self._look()
            self._tell(health)
            self._news.wait(IMPATIENCE if health.phase is Phase.STARTING else self._pace)
            self._news.clear()

    def _tell(self, health: Health) -> None:
        meant = {
            "READY=1": health.phase is Phase.RUNNING,
            "STOPPING=1": health.phase in {Phase.STOPPING, Phase.ENDED},
        }
        once = [line for line, now in meant.items() if now and line not in self._said]
        status = f"STATUS={health.words}"
        lines = once + [status] * (status != self._status)
        if self._notifier.watchdog is not None and health.sound:
            lines.append("WATCHDOG=1")
        if lines and self._notifier.tell(*lines):
            self._said.update(once)
            self._status = status
