"""One strategy's queue in a database of its own, and its workers."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rota_lab import work as works
from rota_lab.databases import Database, Look, kind
from rota_lab.producer import Load, Producer
from rota_lab.servers import Servers
from rota_lab.shift import Work
from rota_lab.strategy import Strategy
from rota_lab.workers import Plan, Workers


class Queue:
    """Use `Trial.fresh`.

    Attributes:
        strategy: The parent's own object, for enqueueing and counting.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.location = strategy.location
        self._kind = kind(strategy.location.database)
        self._observing = self.location.connect()

    def close(self) -> None:
        """Close the connections."""
        self.strategy.close()
        self._observing.close()

    def workers(self, count: int, work: Work = works.nothing, *, drain: bool = False) -> Workers:
        """Worker processes; with `drain` they end when no job is left to claim."""
        settings = {**self.strategy.settings, "workers": float(count)}
        return Workers(Plan(self.location, self.strategy.name, settings, work, drain), count)

    def producer(self, rate: float) -> Producer:
        """A process that enqueues so many jobs a second."""
        return Producer(Load(self.location, self.strategy.name, self.strategy.settings, rate))

    def long_transaction(self) -> contextlib.AbstractContextManager[None]:
        """A transaction that idles until the end of the block."""
        return self._kind.long_transaction(self.location.url)

    def look(self) -> Look:
        """Dead rows, and the oldest transaction."""
        return self._kind.look(self._observing)


@dataclass(frozen=True, slots=True)
class Trial:
    """One strategy on one kind of database, with the settings of the run.

    Attributes:
        settings: The experiment's settings, with those of the command line; also the strategy's.
    """

    strategy: type[Strategy]
    database: Database
    settings: Mapping[str, float]
    servers: Servers

    @property
    def label(self) -> str:
        """Its name in reports."""
        several = len(self.strategy.databases) > 1
        return f"{self.strategy.name}, {self.database.title}" if several else self.strategy.name

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Queue]:
        """An empty queue in a database of its own, which is removed at the end of the block.

        Raises:
            ConfigError: There is no server, or it refuses.
            StoreUnavailable: The server is gone.
        """
        with self.servers.fresh(self.database, redis=self.strategy.redis) as location:
            own = {
                name: value
                for name, value in self.settings.items()
                if name in self.strategy.defaults
            }
            made = self.strategy(location, own)
            with contextlib.closing(Queue(made)) as queue:
                made.make()
                yield queue
