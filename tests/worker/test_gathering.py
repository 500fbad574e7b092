"""How batches are gathered, without a database: which job joins which batch, and what is claimed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rota import Rota, WorkerConfig
from rota.app.resources import Resources
from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.notes import Notes
from rota.worker.apps import Apps
from rota.worker.batches import Batch, Batches
from rota.worker.calls import Calls
from rota.worker.executors.process import Nursery
from rota.worker.homes import Homes
from rota.worker.job_transactions import JobTransactions
from rota.worker.leases import Leases
from rota.worker.plain import PlainJobs
from rota.worker.runners import Runners
from rota.worker.slots import Slots
from rota.worker.switchboard import Switchboard

if TYPE_CHECKING:
    from rota.model.settlement import Settlement

pytestmark = pytest.mark.asyncio


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """A SQLite file, which nothing here looks at."""
    return f"sqlite:///{tmp_path}/rota.db"


def claimed(task: str, first: int, count: int = 1) -> list[ClaimedJob]:
    """Jobs as a claim gives them."""
    return [
        ClaimedJob(
            JobId(n), LeaseId(1), task, f'{{"numbers":{n}}}', "default", 0, 1, 5, None, time.time()
        )
        for n in range(first, first + count)
    ]


def numbers(jobs: list[ClaimedJob]) -> list[int]:
    """Which jobs these are."""
    return [job.id for job in jobs]


class Gathering:
    """Batches of a task `many` that takes three at a time, and what they told."""

    def __init__(self, app: Rota, within: float) -> None:
        app.task(name="many", batch=3, within=within)(handler([]))
        self.ready: list[Batch] = []
        self.room = 0
        self.came = asyncio.Event()
        switchboard = Switchboard()
        switchboard.allow = self._tell
        self.batches = Batches(app.tasks.batch, self._take, switchboard.allow)

    def _take(self, batch: Batch) -> None:
        self.ready.append(batch)
        self.came.set()

    def _tell(self, room: int) -> None:
        self.room = room


def handler(calls: list[str]) -> Callable[[list[int]], None]:
    """A batch handler that notes its calls."""

    def many(numbers: list[int]) -> None:
        calls.append(f"many {numbers}")

    return many


async def test_full_batches(app: Rota) -> None:
    """A full batch goes to the runners at once, and the next job begins another one."""
    gathering = Gathering(app, within=300)
    others = gathering.batches.take([*claimed("many", 1, 4), *claimed("plain", 5)])
    assert numbers(others) == [5]
    [batch] = gathering.ready
    assert numbers(batch.jobs) == [1, 2, 3]
    assert numbers(gathering.batches.unstarted()) == [1, 2, 3, 4]
    # One batch is being gathered: the three of it may be held beside what runs.
    assert gathering.room == 3
    gathering.batches.begin(batch)
    assert numbers(gathering.batches.unstarted()) == [4]
    # And the call counts as one: two of its three jobs are beyond the concurrency.
    assert gathering.room == 5
    gathering.batches.end(batch)
    assert gathering.room == 3
    gathering.batches.drop()
    assert (gathering.room, gathering.batches.unstarted()) == (0, [])


async def test_a_batch_that_waits_for_a_runner(app: Rota) -> None:
    """When its time is up, no more is claimed for it; but what comes still joins it."""
    gathering = Gathering(app, within=0)
    gathering.batches.take(claimed("many", 1))
    assert gathering.room == 3
    await asyncio.wait_for(gathering.came.wait(), 20)
    assert gathering.room == 0
    gathering.batches.take(claimed("many", 2, 3))
    (first,) = gathering.ready
    assert numbers(first.jobs) == [1, 2, 3]
    gathering.batches.begin(first)
    assert numbers(gathering.batches.unstarted()) == [4]
    gathering.batches.drop()


async def test_a_batch_that_was_begun(app: Rota) -> None:
    """Nobody joins a batch that a runner has taken."""
    gathering = Gathering(app, within=0)
    gathering.batches.take(claimed("many", 1))
    await asyncio.wait_for(gathering.came.wait(), 20)
    [first] = gathering.ready
    gathering.batches.begin(first)
    gathering.batches.take(claimed("many", 2))
    assert numbers(first.jobs) == [1]
    assert numbers(gathering.batches.unstarted()) == [2]
    gathering.batches.drop()


async def test_dropped_batches_do_not_come_back(app: Rota) -> None:
    """The clock of a batch that was dropped stops."""
    gathering = Gathering(app, within=0)
    gathering.batches.take(claimed("many", 1))
    gathering.batches.drop()
    for _ in range(5):
        await asyncio.sleep(0)
    assert gathering.ready == []


async def test_batches_and_single_jobs_take_turns(app: Rota) -> None:
    """Neither of them waits until nothing of the other is left."""
    order: list[str] = []
    settled: list[Settlement] = []
    completed: list[JobId] = []
    done = asyncio.Event()
    ended = 0

    @app.task(name="plain")
    async def plain(numbers: int) -> None:
        order.append(f"plain {numbers}")

    def end(count: int) -> None:
        nonlocal ended
        ended += count
        if ended == 9:
            done.set()

    app.task(name="many", batch=3, within=300)(handler(order))
    notes = Notes(lambda: None)
    switchboard = Switchboard()
    switchboard.settle, switchboard.free, switchboard.allow = settled.append, end, lambda _: None
    switchboard.complete = lambda job, _keep, _node: completed.append(job.id)
    homes = Homes([(app, Resources())])
    calls = Calls(
        app.tasks, WorkerConfig(concurrency=1), app.events, homes=homes, notes=notes,
        nursery=Nursery(1), effects=JobTransactions(Apps(app), Leases(), switchboard, notes),
    )  # fmt: skip
    alone = PlainJobs(app.tasks, homes, app.events, switchboard)
    share = Slots(1).share()
    runners = Runners(share, calls, app.tasks.batch, app.events, switchboard, plain=alone)
    runners.deliver(SessionId(1), [*claimed("plain", 1, 3), *claimed("many", 4, 6)])
    await asyncio.wait_for(done.wait(), 20)
    calls.close()
    assert order == ["many [4, 5, 6]", "plain 1", "many [7, 8, 9]", "plain 2", "plain 3"]
    assert sorted([*completed, *(one.job for one in settled)]) == list(range(1, 10))
