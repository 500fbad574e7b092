"""What is measured: each by its name, with how it is taken."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.peers.draining import drain
from benchmarks.peers.enqueueing import enqueue
from benchmarks.peers.field import Peer
from benchmarks.peers.samples import Figures
from benchmarks.peers.servers import Servers
from benchmarks.peers.trickling import latency, trickle
from rota.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One question.

    Attributes:
        take: Takes a sample of a peer, for so many seconds, about; gives its version and the
            figures.
        workers: How many workers there are.
        snapshot: Whether it needs a database with snapshots.
        share: Of the seconds that a measurement is given.
    """

    take: Callable[[Peer, Servers, float], tuple[str, Figures]]
    workers: int = 1
    snapshot: bool = False
    share: float = 1.0

    def applies(self, peer: Peer) -> bool:
        """Whether the peer can be asked."""
        return self.workers <= peer.most_workers and not (self.snapshot and peer.kind == "redis")


ONE, MANY = "enqueue one by one", "enqueue in bulk"
DRAIN, DRAIN_2, HELD = "drain with 1 worker", "drain with 2 workers", "drain beside a held snapshot"
LATENCY = "latency"
TRICKLES = {workers: f"trickle to {workers} worker{'s' * (workers > 1)}" for workers in (1, 4, 16)}

MEASUREMENTS: Mapping[str, Measurement] = {
    ONE: Measurement(take=partial(enqueue, how="one"), share=0.25),
    MANY: Measurement(take=partial(enqueue, how="many"), share=0.25),
    DRAIN: Measurement(take=drain),
    DRAIN_2: Measurement(take=partial(drain, workers=2), workers=2),
    HELD: Measurement(take=partial(drain, held=True), snapshot=True),
    LATENCY: Measurement(take=latency),
    **{
        name: Measurement(take=partial(trickle, workers=workers), workers=workers)
        for workers, name in TRICKLES.items()
    },
}


def chosen(beginnings: Sequence[str]) -> list[str]:
    """The measurements whose names begin with one of these; all of them where none is given.

    Raises:
        ConfigError: No name begins so.
    """
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in MEASUREMENTS):
            names = "; ".join(MEASUREMENTS)
            raise ConfigError(f"no measurement's name begins with {beginning!r}: there are {names}")
    return [name for name in MEASUREMENTS if not beginnings or name.startswith(tuple(beginnings))]
