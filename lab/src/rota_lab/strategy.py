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
        location: The database of the queue.
        settings: The settings of the class, or the run's instead; and `workers`, the number of
            workers.
    """

    name: ClassVar[str]
    """Its name on the command line."""

    summary: ClassVar[str]
    """Two sentences: what it does, and what comes of it."""

    articles: ClassVar[tuple[int, ...]] = ()
    """Numbers of its articles, the main article first; none for Rota."""

    databases: ClassVar[tuple[Database, ...]]

    redis: ClassVar[bool] = False
    """Whether it also needs Redis: `location.redis`, keys beginning with `location.prefix`."""

    variant: ClassVar[bool] = False
    """Whether it is a variant of another strategy, and takes part only on request."""

    attended: ClassVar[bool] = False
    """Whether a process of its own calls `attend` while there are workers."""

    patient: ClassVar[bool] = False
    """Whether jobs can become claimable without an enqueue: because a claim expires, or because
    they are on their way. Workers that drain wait for such jobs."""

    defaults: ClassVar[Mapping[str, float]] = {}
    """Its settings."""

    @classmethod
    def lacking(cls, server: Callable[[], Connection]) -> str | None:
        """What a server lacks that the design needs, and what to do; None if it lacks nothing.

        Args:
            server: Connects to the server.
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
        """How many jobs no worker has finished, jobs at work included."""

    def counts(self) -> Mapping[str, Callable[[], object]]:
        """The ways to count the jobs, by their names; for `counting`."""
        return {"SELECT COUNT(*)": self.left}

    def step(self, shift: Shift) -> bool:
        """Claim, work, finish, once, in the order and the transactions of the design.

        `with shift.claiming():` times the claim, `shift.work(text)` does the work. Nothing may be
        left open when it returns or raises: the next step uses the same connection.

        Returns:
            False if there was no job to claim.

        Raises:
            Failed: The work has failed, and the design has dealt with it.
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
    """All strategies by their names, in the order of the articles, Rota last."""
    from rota_lab import strategies as folder

    found: list[type[Strategy]] = []
    for module in pkgutil.iter_modules(folder.__path__):
        inside = importlib.import_module(f"{folder.__name__}.{module.name}")
        found += [
            design
            for _, design in inspect.getmembers(inside, inspect.isclass)
            if design.__module__ == inside.__name__
            and issubclass(design, Strategy)
            and "name" in vars(design)
        ]
    found.sort(key=lambda design: (design.articles[:1] or (9,), design.name))
    return {design.name: design for design in found}


def strategy(name: str) -> type[Strategy]:
    """The strategy of that name.

    Raises:
        ConfigError: There is none.
    """
    if (found := strategies().get(name)) is None:
        known = ", ".join(strategies())
        raise ConfigError(f"there is no strategy {name!r}; `rota lab list` knows: {known}")
    return found
