"""How a measurement reports its progress."""

from typing import Protocol


class Progress(Protocol):
    """Shows progress, or does not."""

    def expect(self, seconds: float) -> None:
        """About how long everything will take."""
        ...

    def begin(self, what: str, total: float) -> None:
        """A part of the work begins; `total` in jobs or seconds."""
        ...

    def at(self, done: float) -> None:
        """How much of the part is done."""
        ...


class Silent:
    """Shows nothing."""

    def expect(self, seconds: float) -> None:
        """Nothing is shown."""

    def begin(self, what: str, total: float) -> None:
        """Nothing is shown."""

    def at(self, done: float) -> None:
        """Nothing is shown."""


def about(seconds: float) -> str:
    """A rough duration in words."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(seconds, 1):.0f} seconds"
