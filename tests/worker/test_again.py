"""Rounds of subjects in real workers, and a worker that dies in the middle of one."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Again, ConfigError, Rota, State, Unique, WorkerConfig
from rota.events import SettlementsWritten
from rota.worker import Worker
from tests.faults.processes import Ledger, until
from tests.worker import chores
from tests.worker.chores import adopt


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own, for workers that can be killed."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


@pytest.mark.parametrize("by_raising", [False, True], ids=["returned", "raised"])
@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_rounds(app: Rota, executor: str, *, by_raising: bool) -> None:
    """Again means the same returned and raised."""
    rounds: list[int] = []

    def say() -> Again | None:
        rounds.append(1)
        if len(rounds) == 3:
            return None
        if by_raising:
            raise Again(after=0.01)
        return Again(after=0.01)

    async def asay() -> Again | None:
        return say()

    job = app.task(name="round")(asay if executor == "loop" else say).enqueue()
    Worker(app, WorkerConfig(drain=True)).run()
    record = job.record()
    assert (record.state, record.iteration, record.attempt) == (State.COMPLETED, 2, 1)


@pytest.mark.parametrize("by_raising", [False, True], ids=["returned", "raised"])
def test_rounds_in_a_child(app: Rota, *, by_raising: bool) -> None:
    """A child process says it alike."""
    job = adopt(app, chores.outcome).enqueue("again", by_raising=by_raising)
    worker = Worker(app, WorkerConfig())
    app.on(SettlementsWritten)(lambda _: worker.stop())
    worker.run()
    record = job.record()
    assert (record.state, record.iteration) == (State.SCHEDULED, 1)


def test_bad_rounds() -> None:
    """One of the two must be given, and a time must name its zone and be one that comes."""
    with pytest.raises(ConfigError, match="either after"):
        Again()
    with pytest.raises(ConfigError, match="either after"):
        Again(after=1, at=datetime.now(UTC))
    with pytest.raises(ConfigError, match="no time zone"):
        Again(at=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(ConfigError, match=r"Again\(at=…\): must be at most a century"):
        Again(at=datetime.max.replace(tzinfo=UTC))
    assert Again(after=timedelta(hours=1)).after == 3600.0


def test_a_worker_that_is_killed(ledger: Ledger) -> None:
    """Its unique jobs are rescued with their keys, run elsewhere, and free the keys at their end."""
    stubborn = ledger.patient.using(unique=Unique(by=("number",)))
    jobs = [stubborn.enqueue(number=number).id for number in range(4)]
    victim = ledger.worker(queues=("long",), concurrency=4, session_timeout=1.0)
    until(lambda: len(ledger.noted("start")) == 4, "all to start")
    victim.signal(signal.SIGKILL)
    assert [stubborn.enqueue(number=number).id for number in range(4)] == jobs
    ledger.worker(queues=("long",), concurrency=4, session_timeout=1.0)
    ledger.go()
    until(lambda: ledger.count(State.COMPLETED) == 4, "all to end")
    again = [stubborn.enqueue(number=number) for number in range(4)]
    assert not any(one.duplicate for one in again)
