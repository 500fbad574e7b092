"""Slots that several databases share: how many jobs run and are claimed, and whose turn it is."""

import asyncio
import time
from pathlib import Path

import pytest

from rota import Rota, WorkerConfig
from rota.app.resources import Resources
from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.notes import Notes
from rota.worker.apps import Apps
from rota.worker.calls import Calls
from rota.worker.executors.process import Nursery
from rota.worker.homes import Homes
from rota.worker.job_transactions import JobTransactions
from rota.worker.leases import Leases
from rota.worker.plain import PlainJobs
from rota.worker.runners import Runners
from rota.worker.slots import PATIENCE, Share, Slots
from rota.worker.switchboard import Switchboard


def shares(concurrency: int, count: int) -> tuple[Slots, list[Share]]:
    """Slots, and so many shares of them."""
    slots = Slots(concurrency)
    return slots, [slots.share() for _ in range(count)]


def test_a_share_alone_has_all() -> None:
    """A share takes all slots if no other wants any, and gives one up if one waits with fewer."""
    _, [first, second] = shares(3, 2)
    assert [first.take() for _ in range(4)] == [True, True, True, False]
    first.forgo()
    began: list[str] = []
    second.start = lambda: began.append("second") if second.take() else None
    assert not first.yields
    assert not second.take()
    assert first.yields
    first.give()
    assert began == ["second"]
    assert (first.taken, second.taken) == (2, 1)
    assert not first.yields


def test_a_slot_that_nobody_takes() -> None:
    """One that waited and has nothing to run any more does not keep a slot from the next one."""
    _, [first, second, third] = shares(1, 3)
    assert first.take()
    began: list[str] = []
    second.start = lambda: began.append("second")
    third.start = lambda: began.append("third") if third.take() else None
    assert not second.take()
    assert not third.take()
    first.give()
    assert began == ["second", "third"]


def test_slots_beyond() -> None:
    """A share's own slots are no others', and it does not give them up while another one waits."""
    slots, [first, second] = shares(1, 2)
    first.beyond = 2
    assert [first.take() for _ in range(4)] == [True, True, True, False]
    first.forgo()
    began: list[str] = []
    second.start = lambda: began.append("second") if second.take() else None
    assert not second.take()
    assert first.yields
    first.give()
    assert began == ["second"]
    assert not first.yields
    first.give()
    first.give()
    assert (first.taken, second.taken, slots.taken) == (0, 1, 1)
    second.give()
    assert [first.take() for _ in range(4)] == [True, True, True, False]


def test_what_is_beyond_takes_nothing_from_others() -> None:
    """Jobs for slots beyond the shared ones leave the shared ones to be claimed for."""
    _, [first, second] = shares(8, 2)
    second.beyond, second.held = 10, lambda: 12
    assert first.most == 6
    second.held = lambda: 9
    assert first.most == 8


def test_what_may_be_claimed() -> None:
    """A share may always claim its part, and beyond that what the others have no jobs for."""
    _, [first, second] = shares(8, 2)
    assert first.most == 8
    second.held = lambda: 3
    assert first.most == 5
    second.held = lambda: 100
    assert first.most == 4
    _, [only] = shares(8, 1)
    only.held = lambda: 100
    assert only.most == 8
    _, many = shares(2, 5)
    many[0].held = lambda: 2
    assert many[1].most == 1


def test_a_claim_that_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts for a moment only: a database that does not answer keeps no slots from the others."""
    now = 100.0
    monkeypatch.setattr("rota.worker.slots.time.monotonic", lambda: now)
    _, [first, second] = shares(8, 2)
    second.asking(8)
    assert first.most == 4
    now += 0.9 * PATIENCE
    assert first.most == 4
    now += 0.2 * PATIENCE
    assert first.most == 8
    second.asking(2)
    assert first.most == 6
    second.asking(0)
    assert first.most == 8


def runners(app: Rota, share: Share) -> Runners:
    """Runners of an app that have that share, and settle nothing."""
    notes, switchboard = Notes(lambda: None), Switchboard()
    switchboard.settle = lambda _settlement: None
    switchboard.complete = lambda _job, _keep, _node: None
    switchboard.free = switchboard.allow = lambda _count: None
    homes = Homes([(app, Resources())])
    calls = Calls(
        app.tasks, WorkerConfig(concurrency=1), app.events, homes=homes, notes=notes,
        nursery=Nursery(1), effects=JobTransactions(Apps(app), Leases(), switchboard, notes),
    )  # fmt: skip
    plain = PlainJobs(app.tasks, homes, app.events, switchboard)
    return Runners(share, calls, app.tasks.batch, app.events, switchboard, plain=plain)


@pytest.mark.asyncio
async def test_runners_take_turns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where both databases have jobs, a slot alternates with each job, then goes where more are."""
    ran: list[str] = []
    slots = Slots(1)
    with Rota(f"sqlite:///{tmp_path}/a.db") as first, Rota(f"sqlite:///{tmp_path}/b.db") as second:
        done = asyncio.Event()
        both = {"a": (first, 5), "b": (second, 3)}
        made = {name: runners(app, slots.share()) for name, (app, _) in both.items()}
        for name, (app, count) in both.items():

            @app.task(name="job")
            async def job(name: str) -> None:
                await asyncio.sleep(0)
                ran.append(name)
                if len(ran) == 8:
                    done.set()

            jobs = [
                ClaimedJob(
                    JobId(n), LeaseId(1), "job", f'{{"name":"{name}"}}', "default", 0, 1, 5, None,
                    time.time(),
                )
                for n in range(1, count + 1)
            ]  # fmt: skip
            made[name].deliver(SessionId(1), jobs)
        await asyncio.wait_for(done.wait(), 20)
        for each in made.values():
            assert await each.finish(20)
    assert "".join(ran) == "abababaa"
    assert slots.taken == 0
    assert slots.waiting == []
    # A runner that fails gives its slot up as well.
    assert caplog.messages == []
