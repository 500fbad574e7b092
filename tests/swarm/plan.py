"""The plan of faults: all of it comes from the seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHARES = {
    # workers and producers
    "kill": 12, "freeze": 10, "stop": 5, "kill-child": 3, "kill-producer": 4, "freeze-producer": 4,
    "poison": 2,
    # connections
    "terminate": 9, "cut": 9, "silent": 7, "lost-answers": 9, "late-answers": 6,
    # the server
    "crash": 5, "restart": 2, "hang": 3, "full-disk": 2, "clock": 3,
    "fail-over": 2, "fail-over-behind": 2, "move": 1, "move-at-work": 2, "move-to-clone": 2,
    # operators
    "snapshot": 5, "dump": 4, "publication": 3,
}  # fmt: skip
"""How often each kind of fault comes, one beside the others."""

EVERY = 1.9
"""Seconds between two faults, on the average."""

FIRST = 3.0
"""Seconds before the first one."""

LONGEST = 9.0
"""Seconds that a fault lasts at the most."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens when, and to which of its kind.

    Attributes:
        at: Seconds since the begin.
        number: Which of the workers or producers, counted round.
        seconds: How long it lasts, where it lasts.
        share: Of the connections, or whatever else it is about, from 0 to 1.
    """

    at: float
    kind: str
    number: int
    seconds: float
    share: float

    def __str__(self) -> str:
        return f"{self.at:7.2f} s  {self.kind:<16} {self.number:>3}  {self.seconds:4.1f} s  {self.share:.2f}"


def drawn(seed: int, seconds: float, kinds: Sequence[str]) -> Iterator[Fault]:
    """The faults of a seed, in their order; only of these kinds."""
    chance = random.Random(f"{seed} faults")
    shares = [SHARES[kind] for kind in kinds]
    at = FIRST
    while kinds and at < seconds:
        [kind] = chance.choices(kinds, shares)
        yield Fault(
            at, kind, chance.randrange(1000), chance.triangular(0.2, LONGEST, 2.0), chance.random()
        )
        at += chance.expovariate(1 / EVERY)
