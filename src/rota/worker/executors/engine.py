"""What a cluster's engine does for Rota: run bundles on nodes. All else is the worker's affair."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

Hear = Callable[[bytes], None]
"""Told of reports that bundles make while they run."""


class Slot(Protocol):
    """A place in which one bundle can run."""

    @property
    def node(self) -> str | None:
        """The process in which it is, where the worker chooses one."""
        ...


S = TypeVar("S", bound=Slot)


class Engine(Protocol[S]):
    """A cluster of nodes; used on the event loop alone.

    Attributes:
        name: As people know it.
        slots: How many bundles it can run at once.
    """

    name: str
    slots: int

    async def connect(self, hear: Hear, changed: Callable[[], None]) -> None:
        """Find the cluster; `changed` is called when nodes come and go.

        Raises:
            ConfigError: There is none, or the engine is not installed.
        """
        ...

    def has(self, needs: Mapping[str, Any]) -> bool:
        """Whether some node has these resources, be they in use or not."""
        ...

    def take(self, needs: Mapping[str, Any]) -> S | None:
        """A free place with these resources, which is taken from now on."""
        ...

    def give(self, slot: S) -> None:
        """A place is free again."""
        ...

    async def run(self, slot: S, bundle: bytes) -> bytes:
        """Run a bundle, once; the last report.

        Raises:
            NodeLost: It did not end, and nobody knows how far it has come.
        """
        ...

    def stop(self, slot: S, key: str, place: int) -> None:
        """Have a job of a bundle stopped; it need not succeed."""
        ...

    async def close(self) -> None:
        """Leave the cluster."""
        ...
