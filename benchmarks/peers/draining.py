"""Drain a backlog: how many jobs a second, with some workers, beside a snapshot or not?

The clock runs from the first handler's start until the peer's own database shows that nothing is
left. Workers have been started before, but are told to connect when the backlog is there.
"""

import contextlib
import time
from collections.abc import Iterator

from benchmarks.peers import once, records
from benchmarks.peers.field import Peer
from benchmarks.peers.places import Place, place
from benchmarks.peers.processes import PATIENCE, stop
from benchmarks.peers.samples import Figures
from benchmarks.peers.servers import Servers

LONGEST = 4
"""How many times as long as meant a drain may take before it is stopped, and what was done by then
counts."""

POLL = 0.02


def drain(
    peer: Peer, servers: Servers, seconds: float, *, workers: int = 1, held: bool = False
) -> tuple[str, Figures]:
    """Load a backlog for about so many seconds' work, and run it; the version and the rate.

    Raises:
        NotOnce: A job was lost or ran twice.
        DriverFailed: The driver failed.
    """
    jobs = max(100, int(peer.pace * seconds))
    limit = LONGEST * seconds
    with (
        place(peer, servers, workers=workers) as at,
        at.holder() if held else contextlib.nullcontext(),
        at.driver.crew("work", count=workers) as crew,
    ):
        for worker in crew:
            worker.answer()
        at.driver.ask("load", str(jobs), limit=limit + PATIENCE)
        at.tidy()
        for worker in crew:
            worker.tell()
        _first(at)
        began = time.monotonic()
        for done in _watched(at, began + limit):
            if done > jobs:  # the warm-up, too
                at.idle(began + limit - time.monotonic())
                break
        ended = time.monotonic()
        stop(crew)
        ran = records.read(at.driver.records)
        left = at.waiting()
        handled = once.check((record.number for record in ran), jobs, left)
        finished = handled == jobs and left == 0
        by_then = [record for record in ran if record.started <= ended]
        return at.driver.version, {
            "jobs": jobs,
            "run": len(by_then),
            "finished": finished,
            "per_second": round(len(by_then) / (ended - min(record.started for record in ran))),
        }


def _first(at: Place) -> None:
    """Wait until the first handler has begun."""
    end = time.monotonic() + PATIENCE
    for done in _watched(at, end):
        if done:
            return
    raise once.NotOnce(f"ran no job within {PATIENCE:.0f} seconds")


def _watched(at: Place, end: float) -> Iterator[int]:
    """How many jobs have begun, again and again until that moment."""
    while time.monotonic() < end:
        yield records.count(at.driver.records)
        time.sleep(POLL)
