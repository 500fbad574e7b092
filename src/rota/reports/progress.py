"""How a benchmark says how far it is."""

from typing import Protocol


class Progress(Protocol):
    """Something that shows progress, or does not."""

    def begin(self, what: str, total: float) -> None:
        """A part of the work begins; `total` in jobs or seconds."""
        ...

    def at(self, done: float) -> None:
        """So much of the part is done."""
        ...


class Silent:
    """Shows nothing."""

    def begin(self, what: str, total: float) -> None:
        """Nothing is shown."""

    def at(self, done: float) -> None:
        """Nothing is shown."""
