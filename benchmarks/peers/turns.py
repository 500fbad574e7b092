"""Who is measured when, and the samples that come of it.

Within a round all peers are asked the same before the next question comes, so that what is compared
was measured within minutes; and in each round, for each question, in another order.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psycopg

from benchmarks.peers.field import Peer
from benchmarks.peers.measurements import MEASUREMENTS
from benchmarks.peers.once import NotOnce
from benchmarks.peers.processes import DriverFailed
from benchmarks.peers.samples import Figures, Sample
from benchmarks.peers.servers import Servers
from rota.terminal.progress import Progress
from rota.terminal.stopping import name as stopped_by

OVERHEAD = 4.0
"""Seconds beside the measuring itself: for a database, processes that start, rest and end."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One peer's turn."""

    round: int
    measurement: str
    peer: Peer


@dataclass(slots=True)
class Run:
    """What a run has found so far.

    Attributes:
        versions: The peers' versions by their names.
        stopped_by: What ended it early.
    """

    samples: list[Sample] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    stopped_by: str | None = None


def turns(rounds: int, measurements: Sequence[str], peers: Sequence[Peer]) -> Iterator[Turn]:
    """All turns in their order; those left out that a peer cannot be asked."""
    for number in range(1, rounds + 1):
        for measurement in measurements:
            dice = random.Random(f"{number} {measurement}")  # noqa: S311 - an order
            for peer in dice.sample(peers, len(peers)):
                if MEASUREMENTS[measurement].applies(peer):
                    yield Turn(number, measurement, peer)


def expected(plan: Sequence[Turn], seconds: float) -> float:
    """About how many seconds all turns take."""
    return sum(OVERHEAD + MEASUREMENTS[turn.measurement].share * seconds for turn in plan)


def take(plan: Sequence[Turn], servers: Servers, seconds: float, progress: Progress) -> Run:
    """Take all samples; a failure is one, too. Ctrl-C ends the run with what there is."""
    run = Run()
    progress.expect(expected(plan, seconds))
    try:
        for done, turn in enumerate(plan):
            progress.begin(f"{turn.peer.title}: {turn.measurement}", len(plan))
            progress.at(done)
            run.samples.append(_sample(turn, servers, seconds, run.versions))
    except KeyboardInterrupt as error:
        run.stopped_by = stopped_by(error)
    return run


def _sample(turn: Turn, servers: Servers, seconds: float, versions: dict[str, str]) -> Sample:
    measurement = MEASUREMENTS[turn.measurement]
    figures: Figures = {}
    failure = None
    try:
        version, figures = measurement.take(turn.peer, servers, measurement.share * seconds)
        versions[turn.peer.name] = version
    except (NotOnce, DriverFailed, psycopg.Error, OSError) as error:
        failure = " ".join(str(error).split()) or type(error).__name__
    return Sample(
        round=turn.round, measurement=turn.measurement, peer=turn.peer.name,
        figures=figures, failure=failure,
    )  # fmt: skip
