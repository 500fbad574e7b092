"""One look at the database."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from rota.model.job import QueueRecord
from rota.store.health import HorizonFacts, LaneFacts, SessionFacts
from rota.store.operation import Operation
from rota.store.protocol import Store

T = TypeVar("T")


class Running(Protocol):
    """Runs operations."""

    def run(self, operation: Operation[T]) -> T:
        """Run an operation."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The facts of one look.

    Attributes:
        at: When the look was, by this machine's clock.
        moment: The same on a clock that never jumps, in seconds.
        took: Seconds that the look took.
        product: The database's name and version.
        lost: Of several databases, which did not answer, and why: they are not in the figures.
    """

    at: datetime
    moment: float
    took: float
    product: str
    queues: tuple[QueueRecord, ...] = ()
    lanes: tuple[LaneFacts, ...] = ()
    workers: tuple[SessionFacts, ...] = ()
    horizon: HorizonFacts = field(default_factory=HorizonFacts)
    lost: str = ""


def look(store: Store, connection: Running, product: str) -> Snapshot:
    """Look once: one operation per kind of fact, none of which counts or reads the jobs.

    Raises:
        RotaError: The database cannot be reached, or refuses.
    """
    began = time.monotonic()
    queues = connection.run(store.queues())
    counted = time.monotonic()
    lanes = connection.run(store.lanes())
    workers = connection.run(store.workers())
    horizon = connection.run(store.horizon())
    return Snapshot(
        at=datetime.now(UTC),
        moment=counted,
        took=time.monotonic() - began,
        product=product,
        queues=tuple(queues),
        lanes=tuple(lanes),
        workers=tuple(workers),
        horizon=horizon,
    )
