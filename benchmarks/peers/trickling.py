"""Jobs one by one for workers that are idle most of the time: how soon do they start, what do they cost?

Before the clock starts, a job has run, and the workers have come to rest. Processor time is what
the operating system counts, for the workers with their children, and for the server with all its
processes, from the first job until shortly after the last one: what being idle costs is in it.
"""

import random
import time
from collections.abc import Sequence

from benchmarks.peers import once, processor, records
from benchmarks.peers.field import Peer
from benchmarks.peers.places import Place, place
from benchmarks.peers.processes import PATIENCE, Process, stop
from benchmarks.peers.samples import Figures
from benchmarks.peers.servers import Servers
from rota.measure.bench.figures import percentile

REST = 0.15
"""Share of a core that workers at rest use at most, altogether."""

RESTLESS = 8.0
"""Seconds after which they are measured, at rest or not."""

LOOK = 0.5
AFTER = 0.3
"""Seconds that the settlement of the last jobs may take."""

LATE = 1.0
"""Seconds after the last enqueue in which all jobs have started, where workers keep up."""


RATE = 100
"""Jobs a second of a trickle."""

SELDOM = 20
"""Jobs a second for an idle worker, on average."""


def latency(peer: Peer, servers: Servers, seconds: float) -> tuple[str, Figures]:
    """Enqueue a job now and then for one worker; see `trickle`.

    The moments are random: a queue that polls might be in step with regular ones.
    """
    dice = random.Random(peer.name)  # noqa: S311 - the moments of jobs
    jobs = max(10, int(SELDOM * seconds))
    moments = sorted(dice.uniform(0, jobs / SELDOM) for _ in range(jobs))
    return _measured(peer, servers, moments, workers=1)


def trickle(peer: Peer, servers: Servers, seconds: float, *, workers: int) -> tuple[str, Figures]:
    """Enqueue jobs one by one at a steady rate; the version, cost and latency.

    Raises:
        NotOnce: A job was lost or ran twice.
        DriverFailed: The driver failed.
    """
    moments = [number / RATE for number in range(max(10, int(RATE * seconds)))]
    return _measured(peer, servers, moments, workers=workers)


def _measured(
    peer: Peer, servers: Servers, moments: Sequence[float], *, workers: int
) -> tuple[str, Figures]:
    with (
        place(peer, servers, workers=workers) as at,
        at.driver.crew("work", count=workers) as crew,
        at.driver.started("produce") as producer,
    ):
        for worker in crew:
            worker.answer()
            worker.tell()
        producer.answer()
        _rest(at, crew)
        before = _used(at, crew)
        producer.tell(list(moments))
        said = producer.answer(moments[-1] + PATIENCE)
        kept_up = _run(at, said["enqueued"], LATE) and said["enqueued"] == len(moments)
        _run(at, said["enqueued"], moments[-1] + LATE)
        time.sleep(AFTER)
        after = _used(at, crew)
        stop(crew)
        ran = records.read(at.driver.records)
        jobs = once.check((record.number for record in ran), said["enqueued"], at.waiting())
        delays = sorted(record.started - record.enqueued for record in ran)
        server, work = (
            None if late is None or early is None else round(1000 * (late - early) / jobs, 3)
            for late, early in zip(after, before, strict=True)
        )
        return at.driver.version, {
            "jobs": jobs,
            "kept_up": kept_up,
            "server_ms_per_job": server,
            "workers_ms_per_job": work,
            "p50_ms": round(1000 * percentile(delays, 0.5), 2),
            "p95_ms": round(1000 * percentile(delays, 0.95), 2),
        }


def _run(at: Place, jobs: int, limit: float) -> bool:
    """Wait until so many jobs and the warm-up have begun; whether they have in time."""
    end = time.monotonic() + limit
    while records.count(at.driver.records) <= jobs:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _rest(at: Place, crew: Sequence[Process]) -> None:
    """Wait until a job has run and the workers have come to rest."""
    if not _run(at, 0, PATIENCE):
        raise once.NotOnce(f"ran no job within {PATIENCE:.0f} seconds")
    pids = [worker.pid for worker in crew]
    end = time.monotonic() + RESTLESS
    used = processor.seconds(pids)
    while time.monotonic() < end:
        time.sleep(2 * LOOK)
        before, used = used, processor.seconds(pids)
        if used - before <= REST * 2 * LOOK:
            return


def _used(at: Place, crew: Sequence[Process]) -> tuple[float | None, float]:
    """Processor time so far, of the server and of the workers."""
    server = None if at.server is None else processor.seconds([at.server])
    return server, processor.seconds(worker.pid for worker in crew)
