"""What a strategy is: one design of a queue, as its source has it.

A strategy is a class in a file of its own in `strategies/`. It shows its schema and its statements
in full, in the order of its source, and shares nothing with others but this frame.
"""

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import ClassVar, NamedTuple

from rota.errors import ConfigError
from rota_lab.databases import Connection, Database, Deadlock
from rota_lab.location import Location
from rota_lab.shift import Failed, Shift


class Job(NamedTuple):
    """A job. Its text is all that a worker gets, and no two jobs of a queue have the same.

    A larger priority comes first, as in article 4; designs without priorities take no notice.
    """

    text: str
    priority: int = 0


class Strategy(ABC):
    """One design. Parents and workers have an object each; its connection opens when first used.

    Attributes:
        location: Where the queue is.
        settings: The settings of the class, or what the run has instead of them. Besides those,
            `workers` says how many workers there are.
    """

    name: ClassVar[str]
    """What one types for it."""

    summary: ClassVar[str]
    """Two sentences: what it does, and what comes of it."""

    articles: ClassVar[tuple[int, ...]] = ()
    """Numbers of the articles it is from, the main one first; none for Rota."""

    databases: ClassVar[tuple[Database, ...]]

    redis: ClassVar[bool] = False
    """Whether it needs a Redis besides: `location.redis`, with keys that begin with `location.prefix`."""

    variant: ClassVar[bool] = False
    """Whether it is a variant of another one, and takes part only where it is asked for."""

    attended: ClassVar[bool] = False
    """Whether a process of its own calls `attend` while there are workers."""

    patient: ClassVar[bool] = False
    """Whether a job may be claimed later that cannot be now, without anybody enqueueing: because
    a claim of it expires, or because it is on its way. Workers that drain wait for those."""

    defaults: ClassVar[Mapping[str, float]] = {}
    """Its settings."""

    @classmethod
    def lacking(cls, server: Callable[[], Connection]) -> str | None:
        """What a server lacks that the design needs, and what to do; nothing if it lacks nothing.

        Args:
            server: Connects to it.
        """
        del server
        return None

    def __init__(self, location: Location, settings: Mapping[str, float] | None = None) -> None:
        self.location = location
        self.settings = {"workers": 1.0, **self.defaults, **(settings or {})}

    @cached_property
    def db(self) -> Connection:
        """The connection of this process."""
        return self.location.connect()

    def open(self) -> None:
        """Connect, before a shift begins, so that it is not measured."""
        _ = self.db

    def close(self) -> None:
        """Close what is open."""
        if "db" in vars(self):
            self.db.close()
            del self.db

    @abstractmethod
    def make(self) -> None:
        """Make the tables, in an empty database."""

    @abstractmethod
    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue jobs, in this order; committed when it returns."""

    @abstractmethod
    def left(self) -> int:
        """How many jobs are there that no worker has finished, those at work among them."""

    def counts(self) -> Mapping[str, Callable[[], object]]:
        """How one finds out how many jobs there are, by the names of the ways; for `counting`."""
        return {"SELECT COUNT(*)": self.left}

    def step(self, shift: Shift) -> bool:
        """Claim, work, finish, once, in the order and the transactions of the design.

        `with shift.claiming():` times the claim, `shift.work(text)` does the work. Nothing may be
        left open when it returns or raises: the next step uses the same connection.

        Returns:
            False if there was nothing to claim.

        Raises:
            Failed: The work has failed, and the design has done about it what it does.
            Deadlock: The database has undone the claim or what came after it.
        """
        raise NotImplementedError

    def run(self, shift: Shift) -> None:
        """Work until the shift is over: step after step, unless the design has a loop of its own."""
        while not shift.over.is_set():
            try:
                found = self.step(shift)
            except Failed:
                continue
            except Deadlock:
                shift.deadlock()
                continue
            if found:
                shift.claimed()
            elif shift.drain and not (self.patient and self.left()):
                return
            else:
                shift.rest()

    def attend(self, shift: Shift) -> None:
        """What the attending process does until the shift is over; see `attended`."""
        del shift


@cache
def strategies() -> Mapping[str, type[Strategy]]:
    """All strategies by their names: those of the first article first, Rota last."""
    from rota_lab import strategies as folder

    found: list[type[Strategy]] = []
    for module in pkgutil.iter_modules(folder.__path__):
        inside = importlib.import_module(f"{folder.__name__}.{module.name}")
        found += [
            one
            for _, one in inspect.getmembers(inside, inspect.isclass)
            if one.__module__ == inside.__name__
            and issubclass(one, Strategy)
            and "name" in vars(one)
        ]
    found.sort(key=lambda one: (one.articles[:1] or (9,), one.name))
    return {one.name: one for one in found}


def strategy(name: str) -> type[Strategy]:
    """The strategy of that name.

    Raises:
        ConfigError: There is none.
    """
    if (found := strategies().get(name)) is None:
        known = ", ".join(strategies())
        raise ConfigError(f"there is no strategy {name!r}; `rota lab list` knows: {known}")
    return found
