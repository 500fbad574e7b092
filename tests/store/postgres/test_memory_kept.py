"""What jobs remember, and what they wait for: beside old snapshots, in dumps, in another cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pytest

from rota.model.job import ClaimedJob, JobId, SessionInfo
from rota.model.memory import FOR_EVER, Holder, Kind, Pause
from rota.model.states import Move, State
from rota.store.operation import Operation, Stepped, Steps
from rota.store.postgres import clearing, rings, stage
from rota.store.postgres import memory as remembered
from tests.cli.by_hand import psql
from tests.fixtures.postgres import created
from tests.store.factories import record, settle, settlement
from tests.store.postgres.database import KEEP, Database, Raw, buffers, dumped
from tests.store.postgres.test_dump import snapshot
from tests.store.postgres.test_restored import CLUSTERS, restore

T = TypeVar("T")

SIZES = """
    SELECT sum(pg_relation_size(oid)) FROM pg_class
    WHERE relnamespace = 'rota'::regnamespace AND relname ~ '^(finished_)?memory|^signal_mark'
"""
"""Of the tables of memory and their indexes."""


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every round of housekeeping turns the rings."""
    for ring in ("LOG_SIZE", "LEASE_SIZE", "MEMORY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)


@pytest.fixture
def elsewhere(pytestconfig: pytest.Config) -> Iterator[str]:
    """The URL of another database on the same server."""
    with created(pytestconfig) as (_, url):
        yield url


def end(db: Database, jobs: Sequence[ClaimedJob], move: Move, **rest: object) -> None:
    """Settle these jobs of one claim alike."""
    [session] = [row[0] for row in db.sql("SELECT max(id) FROM rota.session")]
    ends = [settlement(job, move, **rest) for job in jobs]  # type: ignore[arg-type]
    assert settle(db.store, db.own, session, *ends) == []


def asleep(db: Database, count: int) -> list[JobId]:
    """Jobs that have taken a step, and wait for a signal."""
    session = db.session()
    db.enqueue(count)
    jobs = db.claim(session, count)
    for job in jobs:
        holder = Holder(session, job.lease, job.id)
        assert db.own.run(db.store.memory.remember(holder, "charge", '"paid"'))
    pauses = (Pause(Kind.WAIT, "go", FOR_EVER, "go"),)
    end(db, jobs, Move.SNOOZE, delay=FOR_EVER, pauses=pauses)
    return [job.id for job in jobs]


def known(db: Database, job: JobId) -> list[str]:
    return [row.name for row in db.own.run(db.store.memory.load([job])).get(job, [])]


def goes_on(db: Database, job: JobId, value: str) -> None:
    """Once told what it waits for, the job runs, remembers its step, and takes the signal once."""
    session = db.session()
    assert db.own.run(db.store.stage(100)).staged == 1
    [claimed] = db.claim(session)
    assert claimed.id == job
    assert known(db, job)[0] == "charge"
    holder = Holder(session, claimed.lease, job)
    first = db.own.run(db.store.memory.answer(holder, "go", "go", over=False))
    second = db.own.run(db.store.memory.answer(holder, "go#2", "go", over=False))
    assert first is not None
    assert second is not None
    assert (first.value, second.ended) == (value, False)
    end(db, [claimed], Move.COMPLETE, keep=KEEP)


def test_beside_an_old_snapshot(db: Database, held: Raw) -> None:
    """Tables do not grow with what has ended, and looks at what is left cost what they did."""
    del held
    [sleeper] = asleep(db, 1)
    db.own.run(db.store.stage(100))

    def costs() -> list[int]:
        queries = (remembered.MEMORY(jobs=[sleeper]), stage.DELIVER(), stage.DUE())
        return [buffers(db, query) for query in queries]

    def round_of_jobs() -> None:
        jobs = asleep(db, 60)
        db.sql("SELECT rota.signal(job, 'go', '1'::json) FROM unnest(%s::int8[]) AS job", jobs)
        assert db.own.run(db.store.stage(100)).staged == len(jobs)
        end(db, db.claim(db.session()), Move.COMPLETE, keep=0.0)
        for _ in range(4):
            db.own.run(db.store.tidy())

    for _ in range(2):
        round_of_jobs()
    size, before = db.one(SIZES), costs()
    for _ in range(6):
        round_of_jobs()
    assert db.one(SIZES) <= size + 64 * 1024
    for cost, was in zip(costs(), before, strict=True):
        assert cost <= 1.5 * was + 30
    assert known(db, sleeper) == ["charge", "go"]
    db.own.run(db.store.memory.signal(sleeper, "go", "7", None))
    goes_on(db, sleeper, "7")


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_dump(db: Database, elsewhere: str, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """It has the memory of waiting and of finished jobs, where rings turn.

    They turn before the dump has its locks, and in the round before.
    """
    told, waits = asleep(db, 2)
    [done] = asleep(db, 1)
    db.own.run(db.store.retry([done]))
    end(db, db.claim(db.session()), Move.COMPLETE, keep=KEEP)
    db.own.run(db.store.memory.signal(told, "go", "1", None))
    kept: list[Raw] = []
    if when == "before":
        monkeypatch.setattr(clearing, "REST", 600.0)
        began = snapshot(db, kept)
        for _ in range(4):
            db.own.run(db.store.tidy())
    else:
        emptied: list[str] = []
        while not any("memory" in line and "empty" in line for line in emptied):
            assert len(kept) < 10
            began = snapshot(db, kept)
            emptied = db.own.run(db.store.tidy())
    psql(elsewhere, dumped(db.url, f"--snapshot={began}"), "-v", "ON_ERROR_STOP=1")
    with Database(elsewhere) as other:
        goes_on(other, told, "1")
        assert record(other.store, other.own, waits).state is State.SCHEDULED
        other.own.run(other.store.memory.signal(waits, "go", "2", None))
        goes_on(other, waits, "2")
        assert known(other, done)[0] == "charge"
        assert other.own.run(other.store.retry([done])) == [done]
        assert known(other, done)[0] == "charge"


@CLUSTERS
def test_another_cluster(db: Database, *, clone: bool) -> None:
    """Signals and waits, unmatched or new, find each other by its numbers and are compared once."""
    told, waits = asleep(db, 2)
    db.own.run(db.store.stage(100))
    db.own.run(db.store.memory.signal(told, "go", "1", None))
    restore(db, clone=clone)
    goes_on(db, told, "1")
    db.own.run(db.store.memory.signal(waits, "go", "2", None))
    goes_on(db, waits, "2")
    db.own.run(db.store.stage(100))
    assert db.own.run(db.store.due()) is None


def between(operation: Operation[T], act: Callable[[], object]) -> Operation[T]:
    """The same operation, where something else happens before each of its further statements."""

    def steps() -> Steps[T]:
        inner = operation.steps
        try:
            request = next(inner)
            while True:
                rows = yield request
                act()
                request = inner.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result

    return Stepped(operation.name, steps(), operation.begin, operation.then)


@CLUSTERS
def test_another_cluster_that_is_not_idle(db: Database, *, clone: bool) -> None:
    """An uncompared signal is compared, though other transactions end as the logs are anchored."""
    [told] = asleep(db, 1)
    db.own.run(db.store.stage(100))
    db.own.run(db.store.memory.signal(told, "go", "1", None))
    restore(db, clone=clone)
    other = db.bare()

    def end_one() -> None:
        other.execute("SELECT pg_current_xact_id()")
        other.commit()

    info = SessionInfo("alpha", 4711, ("default",), 60.0)
    db.own.run(between(db.store.open_session(info), end_one))
    goes_on(db, told, "1")
