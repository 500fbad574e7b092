"""The process that enqueues at a fixed rate."""

import contextlib
import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rota.errors import RotaError, StoreUnavailable
from rota.measure.processes import Group, Line
from rota_lab.location import Location
from rota_lab.strategy import Job, strategy


@dataclass(frozen=True, slots=True)
class Load:
    """How jobs arrive: evenly, one by one; their texts are 1, 2, 3 and so on."""

    location: Location
    strategy: str
    settings: Mapping[str, float]
    rate: float


@dataclass(frozen=True, slots=True)
class Sent:
    """How many jobs were enqueued since the last time, and the error that ended it."""

    jobs: int
    error: str | None


class Producer(Group[Sent]):
    """The process; use in a `with` block."""

    def __init__(self, load: Load) -> None:
        super().__init__(_produce, load, 1)

    def sent(self) -> int:
        """How many jobs it has enqueued since the last time.

        Raises:
            StoreUnavailable: The producer has lost the database.
        """
        [told] = self.tell()
        if told.error is not None:
            raise StoreUnavailable(f"the producer: {told.error}")
        return told.jobs


def _produce(line: Line[Sent], load: Load) -> None:
    queue = strategy(load.strategy)(load.location, load.settings)
    stopping = threading.Event()
    sent, told, error = 0, 0, None

    def take() -> Sent:
        nonlocal told
        jobs, told = sent - told, sent
        return Sent(jobs, error)

    with contextlib.closing(queue):
        try:
            queue.open()
        except RotaError as lost:
            error = str(lost)
            stopping.set()
        line.ready()
        line.begin(take, stopping.set)
        due = time.monotonic()
        for number in itertools.count(1):
            if stopping.is_set():
                break
            try:
                queue.enqueue([Job(str(number))])
            except RotaError as lost:
                error = str(lost)
                break
            sent = number
            due += 1 / load.rate
            # One that has fallen behind does not pause: it tries to catch up.
            if (pause := due - time.monotonic()) > 0:
                stopping.wait(pause)
        # The parent may still ask.
        stopping.wait()
    line.end(take())
