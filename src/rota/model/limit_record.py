"""A limit as the database knows it at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimitRecord:
    """A limit whose jobs wait, are held by workers, or have started lately.

    Attributes:
        key: What its jobs have in common.
        running: At most so many of them run at once; `None`: that is not limited.
        held: How many of its jobs workers hold now: these have the places.
        rate: At most so many start within `seconds`; `None`: that is not limited.
        seconds: The length of that window, which slides: 1, 60 or 3600.
        started: How many have started within the last `seconds`.
        waiting: Whether any of its jobs are available: they wait for a place, or for a worker.
    """

    key: str
    running: int | None
    held: int
    rate: int | None
    seconds: float | None
    started: int
    waiting: bool

    @property
    def full(self) -> bool:
        """Whether none of its jobs may begin just now."""
        return (self.running is not None and self.held >= self.running) or (
            self.rate is not None and self.started >= self.rate
        )
