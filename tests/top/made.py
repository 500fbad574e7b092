"""Snapshots for the tests of what `rota top` makes of them."""

from datetime import UTC, datetime
from typing import Any

from rota.model.job import QueueRecord
from rota.model.states import State
from rota.store.health import HolderFacts, HorizonFacts, LaneFacts, SessionFacts
from rota.top.history import History
from rota.top.queues import QueueRow, queue_rows
from rota.top.snapshot import Snapshot

NOON = datetime(2001, 9, 9, 12, tzinfo=UTC)


def queue(name: str = "mail", appended: int = 0, claimed: int = 0, **counts: Any) -> QueueRecord:
    """A queue; counts by the names of their states, and `paused`."""
    paused = counts.pop("paused", False)
    return QueueRecord(
        name, paused, {State(state): jobs for state, jobs in counts.items()}, appended, claimed
    )


def snapshot(*queues: QueueRecord, moment: float = 0.0, **rest: Any) -> Snapshot:
    """A look at these queues."""
    return Snapshot(at=NOON, moment=moment, took=0.002, product="SQLite 3", queues=queues, **rest)


def rows(*queues: QueueRecord, lanes: tuple[LaneFacts, ...] = ()) -> list[QueueRow]:
    """What a first look shows."""
    return queue_rows(snapshot(*queues, lanes=lanes, workers=(worker(queues=("*",)),)), History())


def lane(queue: str, oldest: float | None, priority: int = 0) -> LaneFacts:
    """A lane in which the next job has waited so long."""
    return LaneFacts(queue, priority, paused=False, oldest=oldest)


def worker(**changes: Any) -> SessionFacts:
    """A worker in good health."""
    healthy: dict[str, Any] = {
        "id": 7, "worker": "web1:4242", "queues": ("default", "mail"), "timeout": 15.0,
        "silent": 1.0, "leased": 3, "oldest_lease": 2.0, "open": 3700.0,
    }  # fmt: skip
    return SessionFacts(**healthy | changes)


def holder(**changes: Any) -> HolderFacts:
    """A session with a transaction."""
    usual: dict[str, Any] = {
        "kind": "session", "pid": 4711, "name": "psql", "role": "report",
        "state": "idle in transaction", "seconds": 30.0, "age": 12,
    }  # fmt: skip
    return HolderFacts(**usual | changes)


def horizon(*holders: HolderFacts, **rest: Any) -> HorizonFacts:
    """These holders, as far as the role may see."""
    return HorizonFacts(holders, **rest)
