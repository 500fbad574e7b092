"""Workers make the jobs of cron entries, and run them on time."""

import asyncio
import logging
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rota import Backoff, Context, Limit, Rota, State, WorkerConfig
from rota.cron.entry import CronEntry, Missed
from rota.events import CronJobsMade, CronRunsMissed, Event, JobsEnqueued, JobStarted
from rota.model.job import SessionId
from rota.store.connections import Transaction
from rota.store.cron import ENTRIES
from rota.worker.cron import CronWatch
from rota.worker.switchboard import Switchboard
from tests.fixtures.workers import records, until, working

EVERY_SECOND = "* * * * * *"


def heard(app: Rota, *kinds: type[Event]) -> list[Event]:
    """All events of these kinds, as they come."""
    events: list[Event] = []
    for kind in kinds:
        app.events.subscribe(kind, events.append)
    return events


def test_on_time(app: Rota) -> None:
    """Each job starts a moment after its due time, and knows it."""
    late: list[float] = []
    dues: list[datetime] = []

    @app.cron(EVERY_SECOND, timezone="Europe/Rome", due="at", args={"word": "hello"})
    @app.task(name="tick")
    async def tick(at: datetime, word: str) -> None:
        late.append(time.time() - at.timestamp())
        dues.append(at)
        assert word == "hello"

    with working(app):
        until(lambda: len(dues) >= 4)
    assert dues == [dues[0] + timedelta(seconds=number) for number in range(len(dues))]
    assert {one.microsecond for one in dues} == {0}
    assert {one.utcoffset() for one in dues} <= {timedelta(hours=1), timedelta(hours=2)}
    assert min(late) >= 0
    # Tens of milliseconds; the machine may be busy with something else.
    assert min(late) < 0.5


@pytest.mark.both
def test_an_entry_that_builds_a_flow(app: Rota) -> None:
    """Each due time has one flow: a failed attempt leaves none, as flow and job commit together."""
    tries: list[datetime] = []

    @app.task(name="part")
    async def part(number: int) -> int:
        return number

    @app.task(name="add_up", store_result=True)
    def add_up(numbers: list[int]) -> int:
        return sum(numbers)

    @app.cron(EVERY_SECOND, due="at")
    @app.task(name="morning", retry=Backoff(first=0))
    def morning(ctx: Context, at: datetime) -> None:
        tries.append(at)
        with ctx.transaction() as tx:
            with app.flow("morning", conn=tx) as f:
                f.add(add_up, f.map(part, [1, 2, 3]).results)
            if tries.count(at) < 2:
                raise ValueError(at)

    with working(app, poll=0.1):
        until(lambda: len(app.flows.list(state="completed")) >= 2)
    flows = app.flows.list(name="morning", limit=100)
    ended = app.jobs.list(task="morning", state="completed", limit=100)
    assert len(flows) == len(ended)
    done = [flow for flow in flows if flow.state.ended]
    assert {app.flows.get(flow.id).job("add_up").result(0) for flow in done} == {6}


def test_two_workers_make_each_job_once(app: Rota, store_url: str) -> None:
    """Whoever comes first; both run what there is."""
    starts: list[str] = []

    def declare(one: Rota) -> Rota:
        @one.cron(EVERY_SECOND, due="at", missed="all")
        @one.task(name="tick")
        async def tick(at: datetime) -> None:
            starts.append(at.isoformat())

        return one

    with Rota(store_url) as other, working(declare(app)), working(declare(other)):
        until(lambda: len(starts) >= 3)
    # Jobs that were made and not run by then are there all the same.
    made = [record.args for record in records(app)]
    assert len(made) == len(set(made))
    assert len(starts) == len(set(starts))


def test_changes_take_effect_at_once(app: Rota) -> None:
    """A worker that sleeps learns of an entry, of its change, its pause and its end."""
    ran = threading.Event()

    @app.task(name="tick")
    async def tick() -> None:
        ran.set()

    with working(app):
        app.cron.add("tick", "0 0 29 2 *", tick)
        assert not ran.is_set()
        app.cron.change("tick", expression=EVERY_SECOND)
        assert ran.wait(10)
        app.cron.pause("tick")
        [paused] = app.cron.entries()
        # A job that was made before the pause may still start.
        until(lambda: not [one for one in records(app) if not one.state.finished])
        ran.clear()
        job = app.cron.run("tick")
        assert ran.wait(10)
        until(lambda: job.status is State.COMPLETED)
        assert app.cron.entries() == [paused]
        ran.clear()
        app.cron.resume("tick")
        assert ran.wait(10)
        app.cron.remove("tick")
        assert app.cron.entries() == []


def test_events(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """Who makes jobs says so, and what was missed."""
    caplog.set_level(logging.WARNING, "rota")
    events = heard(app, CronJobsMade, CronRunsMissed)

    @app.task(name="tick")
    async def tick() -> None: ...

    now = datetime.now(UTC)
    minute = (now.minute + 30) % 60
    for missed in Missed:
        entry = CronEntry(missed.value, f"{minute} * * * *", tick.name, missed=missed)
        app.database.run(app.database.store.cron.add(entry, now - timedelta(hours=3)))
    with working(app):
        until(lambda: len(events) >= 4)
    made = {one.entry: one for one in events if isinstance(one, CronJobsMade)}
    gone = {one.entry: one for one in events if isinstance(one, CronRunsMissed)}
    assert {name: len(one.jobs) for name, one in made.items()} == {"latest": 1, "all": 3}
    assert {len(one.due) - len(one.jobs) for one in made.values()} == {0}
    assert {one.first for one in gone.values()} == {made["all"].due[0]}
    assert sorted(gone) == ["latest", "skip"]
    assert "cron entry skip: runs from" in caplog.text


def test_what_is_enqueued_is_told(app: Rota) -> None:
    """The worker that makes jobs tells of them as of any others; of one that is there, nothing."""
    told = heard(app, JobsEnqueued)
    made = heard(app, CronJobsMade)

    @app.task(name="plain", queue="mail")
    async def plain() -> None: ...

    @app.task(name="unique", unique="one")
    async def unique() -> None: ...

    minute = (datetime.now(UTC).minute + 30) % 60
    app.cron(f"{minute} * * * *", name="plain", missed="all")(plain)
    app.cron(f"{minute} * * * *", name="unique", missed="all")(unique)
    for entry in app.cron.declarations():
        app.database.run(app.database.store.cron.add(entry, datetime.now(UTC) - timedelta(hours=3)))
    unique.enqueue()
    told.clear()
    with working(app, queues=("none",)):
        until(lambda: all(one.due and one.due > datetime.now(UTC) for one in app.cron.entries()))
        until(lambda: made and told)
    [jobs] = [one for one in made if isinstance(one, CronJobsMade)]
    assert (jobs.entry, len(jobs.jobs)) == ("plain", 3)
    assert told == [JobsEnqueued(plain.name, "mail", jobs.jobs)]


def test_one_at_a_time(app: Rota) -> None:
    """The jobs of due times and those that were enqueued share the limit of their key."""
    running: list[int] = [0]
    most: list[int] = []

    @app.cron(EVERY_SECOND, args={"tenant": "acme"})
    @app.task(name="call", limit=Limit("{tenant}", running=1))
    async def call(tenant: str) -> None:
        assert tenant == "acme"
        running[0] += 1
        most.append(running[0])
        await asyncio.sleep(0.3)
        running[0] -= 1

    call.enqueue_many([("acme",)] * 4)
    with working(app, concurrency=10):
        until(lambda: app.cron.entries()[0].last and len(most) >= 6)
    assert set(most) == {1}


def test_what_the_code_says_of_a_queue(app: Rota) -> None:
    """A worker that starts writes it with the entry, though the queue is declared after it."""

    @app.cron("@daily")
    @app.task(name="tick", queue="mail")
    async def tick() -> None: ...

    app.queue("mail", max_attempts=2, timeout=7)
    with working(app):
        [record] = app.cron.entries()
        assert (record.entry.max_attempts, record.entry.timeout) == (2, 7.0)
        job = app.cron.run(tick.name).record()
        assert (job.max_attempts, job.timeout) == (2, 7.0)


def test_without_upkeep(app: Rota, store_url: str) -> None:
    """A worker that does no upkeep makes no jobs, and yet its code's entries are run by others."""
    made = heard(app, CronJobsMade)
    started = heard(app, JobStarted)

    @app.cron(EVERY_SECOND)
    @app.task(name="tick", queue="declared")
    async def tick() -> None: ...

    with working(app, upkeep=False):
        [entry] = app.cron.entries()
        due = entry.due
        assert due is not None
        until(lambda: datetime.now(UTC) > due + timedelta(seconds=1.5))
        assert app.cron.entries()[0].last is None
        with Rota(store_url) as helper, working(helper, queues=("none",)):
            theirs = heard(helper, CronJobsMade)
            until(lambda: theirs and started)
    assert made == []


def test_an_entry_that_somebody_keeps_locked(app: Rota) -> None:
    """Others go on, and this one when it is free."""
    if app.database.store.name != "postgres":
        pytest.skip("SQLite has one lock for all")
    names: list[str] = []
    app.events.subscribe(CronJobsMade, lambda event: names.append(event.entry))

    @app.task(name="tick")
    async def tick() -> None: ...

    app.cron.add("locked", EVERY_SECOND, tick)
    app.cron.add("free", EVERY_SECOND, tick)
    transaction = app.database.begin()
    app.cron.change("locked", jitter=0, conn=transaction.connection)
    with working(app):
        until(lambda: names.count("free") >= 2)
        assert "locked" not in names
        transaction.commit()
        until(lambda: "locked" in names)


def test_many_entries_that_cannot_be_read_here(app: Rota) -> None:
    """They stay due, and yet one that comes after them has its jobs."""
    made = heard(app, CronJobsMade)

    @app.task(name="tick")
    async def tick() -> None: ...

    transaction = app.database.begin()
    for number in range(ENTRIES):
        app.cron.add(f"bad {number}", EVERY_SECOND, tick, conn=transaction.connection)
    break_entries(app, transaction)
    app.cron.add("good", EVERY_SECOND, tick, conn=transaction.connection)
    transaction.commit()
    until(lambda: min(one.due for one in app.cron.entries() if one.due) < datetime.now(UTC))
    with working(app):
        until(lambda: len(made) >= 2)
    assert {one.entry for one in made if isinstance(one, CronJobsMade)} == {"good"}


def test_who_waits_for_an_entry_wakes_for_the_next(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one cannot be made the pauses grow; they end when another one comes due."""

    @app.task(name="tick")
    async def tick() -> None: ...

    minute = (datetime.now(UTC).minute + 30) % 60
    entry = CronEntry("bad", f"{minute} * * * *", tick.name)
    app.database.run(app.database.store.cron.add(entry, datetime.now(UTC) - timedelta(hours=1)))
    transaction = app.database.begin()
    break_entries(app, transaction)
    transaction.commit()
    app.cron.add("next", f"{minute} * * * *", tick)
    clock = [time.monotonic()]
    monkeypatch.setattr("rota.worker.cron.time", SimpleNamespace(monotonic=lambda: clock[0]))
    pauses: list[float] = []
    with closing(app.database.store.connect()) as connection:
        watch = CronWatch(
            app.database.store, connection, WorkerConfig(poll=1e6), app.events, Switchboard()
        )
        while len(pauses) < 20:
            look = connection.run(app.database.store.look([], cron=True))
            assert look.cron_later is not None
            pause = watch.step(look, known=True)
            assert pause is not None
            pauses.append(pause)
            clock[0] += pause
    assert pauses[0] == 0, "it was put aside, and there may be others"
    assert pauses[1] < pauses[2] < pauses[3]
    assert pauses[-1] == pytest.approx(look.cron_later, abs=1)


def break_entries(app: Rota, transaction: Transaction) -> None:
    """Give all entries a time zone that exists on other machines only."""
    table = "rota.cron_entry" if app.database.store.name == "postgres" else "rota_cron_entry"
    driver: Any = transaction.connection
    driver.execute(f"UPDATE {table} SET timezone = 'Mars/Base'")


def test_a_paused_entry_stays_paused(app: Rota) -> None:
    """A worker that starts does not resume it."""

    @app.cron("@daily")
    @app.task(name="tick")
    async def tick() -> None: ...

    with working(app):
        app.cron.pause("tick")
    with working(app):
        [entry] = app.cron.entries()
        assert (entry.paused, entry.declared, entry.undeclared) == (True, True, False)
    [entry] = app.cron.entries()
    assert entry.undeclared


def test_a_lost_session(app: Rota) -> None:
    """A worker that goes on under a new session still has its entries, and writes none."""

    @app.cron("@daily")
    @app.task(name="tick")
    async def tick() -> None: ...

    with working(app, session_timeout=1.0):
        [worker] = app.database.run(app.database.store.workers())
        # A worker with newer code starts meanwhile.
        newer = replace(app.cron.declared[tick.name], jitter=7.0)
        app.database.run(app.database.store.cron.declare(SessionId(worker.id), [newer]))
        app.database.run(app.database.store.close_session(SessionId(worker.id)))
        until(
            lambda: (
                [one.id for one in app.database.run(app.database.store.workers())]
                not in ([], [worker.id])
            )
        )
        until(lambda: not app.cron.entries()[0].undeclared)
        assert app.cron.entries()[0].entry == newer
