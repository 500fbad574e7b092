"""The jobs that drivers take."""

import time

from benchmarks.peers.drivers.jobs import Jobs
from benchmarks.peers.records import WARM_UP


def test_so_many() -> None:
    """After a job to warm up, each number once, in chunks."""
    jobs = Jobs(count=5)
    numbers = [[number for number, _ in chunk] for chunk in jobs.chunks(2)]
    assert numbers == [[WARM_UP], [0, 1], [2, 3], [4]]
    assert jobs.enqueued == 5
    assert jobs.seconds > 0


def test_for_so_long() -> None:
    """Until the time is up, which is not before."""
    jobs = Jobs(seconds=0.01)
    assert [number for number, _ in jobs.one_by_one()] == [WARM_UP, *range(jobs.enqueued)]
    assert jobs.seconds >= 0.01


def test_warming_up_takes_no_time() -> None:
    """The clock starts when a job is taken after it."""
    jobs = Jobs(count=1)
    taken = jobs.one_by_one()
    next(taken)
    began = time.monotonic()
    while time.monotonic() < began + 0.02:
        pass
    assert [number for number, _ in taken] == [0]
    assert jobs.seconds <= time.monotonic() - began - 0.02


def test_as_due() -> None:
    """One at each moment, and not before."""
    jobs = Jobs()
    moments = [0.0, 0.01, 0.02]
    numbers = [number for number, _ in jobs.as_due(lambda: moments)]
    assert numbers == [WARM_UP, 0, 1, 2]
    assert jobs.seconds >= 0.02


def test_a_producer_that_falls_behind_leaves_jobs_out() -> None:
    """None comes long after the last moment."""
    jobs = Jobs()
    moments = [-10.0, -9.0, -8.0]  # as if the driver had taken ten seconds for the first
    assert [number for number, _ in jobs.as_due(lambda: moments)] == [WARM_UP]
    assert jobs.enqueued == 0
