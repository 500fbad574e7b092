"""What a relay gives to a store: how its jobs are handed over, between their claim and their settlement.

While they are in its hands no other relay gets jobs of the queue. If it comes to nothing, for
whatever reason, the jobs have their places again, before all that came later. What was handed over
all the same is handed over again.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rota.model.job import ClaimedJob
from rota.model.settlement import Settlement


class Hand(Protocol):
    """Hands jobs over. It blocks, and must not use the connection."""

    def prepare(self) -> None:
        """What has to be done while no other relay of the queue can be at work.

        It comes before the last look that this is so.
        """
        ...

    def __call__(self, jobs: Sequence[ClaimedJob]) -> Sequence[Settlement]:
        """Hand the jobs over, in this order; what becomes of each.

        Raises:
            Exception: Perhaps none was handed over; then all stay where they are.
        """
        ...


class Relaying(NamedTuple):
    """Whose jobs are handed over, and how.

    Attributes:
        queue: Where they lie.
        task: The relay's.
        limit: How many jobs at once.
        seconds: How long handing them over may take.
    """

    queue: str
    task: str
    limit: int
    seconds: float
