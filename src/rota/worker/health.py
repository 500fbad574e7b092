"""How a worker is, as its own threads show; no database is asked.

- **live**: each thread that the worker cannot do without goes on. A database that is away, and a
  handler that blocks the event loop, change nothing about that.
- **ready**: it holds a session, and claims.
- **sound**: a new process would do no better. One would where a thread has ended, or where the
  worker has no session and does not know why: its thread for that hangs in something. A database
  that is away is no such reason; a worker that starts without one ends at once.

What cannot be seen from here: whether the event loop turns, and whether a thread that waits for a
lock of the database's waits for ever.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rota.config import WorkerConfig
from rota.model.job import SessionId
from rota.worker.claim import LONGER
from rota.worker.loop import Repeating

STUCK = 60.0
"""Seconds that a step may take beyond its sleep: connecting to a server takes its time, too."""


class Phase(StrEnum):
    """Where a worker is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is at one moment.

    Attributes:
        phase: Where it is in its life. Only of a worker that is running is more known.
        session: The session that it holds.
        running: How many jobs run.
        ended: The threads that have ended, though they should go on: `claimer`, `session` …
        trouble: By thread, the class of the exception with which its last step ended; the log has
            more.
        stuck: The threads that have not come to the end of a step for more than a minute.
    """

    phase: Phase
    session: SessionId | None = None
    running: int = 0
    ended: tuple[str, ...] = ()
    trouble: Mapping[str, str] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether the process works, whatever the database does."""
        return not self.ended

    @property
    def ready(self) -> bool:
        """Whether it claims, under a session."""
        return self.live and not self._not_ready

    @property
    def sound(self) -> bool:
        """Whether a new process would do no better."""
        if self.phase is not Phase.RUNNING:
            return True
        tries = "session" in self.trouble and "session" not in self.stuck
        return self.live and (self.session is not None or tries)

    @property
    def why(self) -> tuple[str, ...]:
        """Why it is not live, or not ready: each reason in a few words."""
        return (*(f"the thread {name!r} has ended" for name in self.ended), *self._not_ready)

    @property
    def words(self) -> str:
        """All of this in one line."""
        state = str(self.phase)
        if self.phase is Phase.RUNNING:
            state = "; ".join(self.why) if self.why else f"claiming, session {self.session}"
        return f"{state}; {self.running} job(s) running" if self.running else state

    @property
    def _not_ready(self) -> tuple[str, ...]:
        if self.phase is not Phase.RUNNING:
            return (f"it is {self.phase}",)
        said = []
        if self.session is None:
            said.append("it holds no session" + self._cause("session"))
        if "claimer" in self.trouble or "claimer" in self.stuck:
            said.append("it cannot claim" + self._cause("claimer"))
        return tuple(said)

    def _cause(self, name: str) -> str:
        if name in self.stuck:
            return f": {name} has waited for more than {STUCK:g} seconds"
        return f": {self.trouble[name]}, see the log" if name in self.trouble else ""


def examined(
    threads: Mapping[str, Repeating],
    session: SessionId | None,
    config: WorkerConfig,
    *,
    running: int,
) -> Health:
    """The health of a worker that is running, from its threads by name, and the session it holds."""
    # Longer than each of them sleeps of its own will; the settler sleeps until there is something
    # to write.
    sleeps = max(LONGER * config.poll, 2 * config.heartbeat)
    since = time.monotonic() - sleeps - STUCK
    return Health(
        Phase.RUNNING,
        session,
        running,
        ended=tuple(name for name, thread in threads.items() if not thread.is_alive()),
        trouble={
            name: type(trouble).__name__
            for name, thread in threads.items()
            if (trouble := thread.trouble) is not None
        },
        stuck=tuple(
            name
            for name in ("session", "claimer")
            if name in threads and threads[name].since < since
        ),
    )
