"""What each driver does."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

Job: TypeAlias = tuple[int, float]
"""A job's args: its number, and the moment when its enqueue is called."""

Handle: TypeAlias = Callable[[int, float], None]
"""Writes down that a job ran; the only work of a handler."""


class Driver(Protocol):
    """One peer."""

    @property
    def chunk(self) -> int:
        """How many jobs a call in bulk has; 1 where the peer has no such call."""
        ...

    def setup(self) -> str:
        """Make the peer's tables in an empty database; returns its version."""
        ...

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """Enqueue each job by a call of its own, over one connection, durably before the next.

        The jobs may be taken with pauses between them.
        """
        ...

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """Enqueue the jobs of each chunk together."""
        ...

    def work(self, handle: Handle) -> None:
        """Run a worker until a signal ends it: see `ends_by` in field.py."""
        ...
