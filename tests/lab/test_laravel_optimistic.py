"""`laravel-optimistic`: what a window as wide as there are workers is good for."""

import random
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Trial
from rota_lab.shift import Shift
from rota_lab.strategies.laravel_optimistic import LaravelOptimistic
from rota_lab.strategy import Job
from rota_lab.work import nothing
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander

WORKERS = 4

LUCKY = 4
"""A seed whose first four picks of four are four different ones."""


@pytest.mark.parametrize("database", [Database.POSTGRES, Database.MARIADB])
@pytest.mark.parametrize("window", [1, WORKERS])
def test_workers_that_pick_differently_do_not_preempt(
    trial: Callable[..., Trial], database: Database, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have selected before the first one claims. With a window of one all want the first job."""
    monkeypatch.setattr(LaravelOptimistic, "chance", random.Random(LUCKY))
    settings = {"window": window, "retry_after": 90}
    with (
        trial("laravel-optimistic", database, **settings).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        queue.strategy.enqueue([Job(str(number)) for number in range(WORKERS)])
        bystander.hold("select * from jobs for update")
        workers = [LaravelOptimistic(queue.location, settings) for _ in range(WORKERS)]
        shift = Shift(nothing)
        threads = [threading.Thread(target=worker.step, args=(shift,)) for worker in workers]
        for thread in threads:
            thread.start()
        until(lambda: bystander.waiting() == WORKERS, "all workers to claim")
        bystander.release()
        for thread, worker in zip(threads, workers, strict=True):
            thread.join(LONG)
            worker.close()
        assert sorted(text for _, text in shift.told().worked) == ["0", "1", "2", "3"]
        preempted = sum(worker.preempted for worker in workers)
        assert (preempted >= WORKERS - 1) if window == 1 else (preempted == 0)
        assert queue.strategy.left() == 0


@pytest.mark.parametrize("window", [0, 3])
def test_the_window_is_as_wide_as_there_are_workers(
    trial: Callable[..., Trial], window: int
) -> None:
    """Unless it was said how wide; nothing comes too early by more than that."""
    settings = {"window": window, "workers": 3}
    with trial("laravel-optimistic", Database.SQLITE).fresh() as queue:
        queue.strategy.enqueue([Job(str(number)) for number in range(60)])
        shift = Shift(nothing)
        with closing(LaravelOptimistic(queue.location, settings)) as worker:
            worker.run(shift)
        worked = [int(text) for _, text in shift.told().worked]
        early = max(text - turn for turn, text in enumerate(worked))
        assert 0 < early <= 2
