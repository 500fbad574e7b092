"""The keys of a task hold for the jobs of its cron entries: unique, limit and fair."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota import (
    ArgsError,
    ConfigError,
    Limit,
    Placing,
    Rota,
    State,
    Task,
    Unique,
)
from rota.events import JobsEnqueued
from rota.model.job import ClaimedJob
from tests.app.due import HOURLY, made
from tests.store.factories import claim, open_session

LONG = timedelta(days=40 * 365)
"""A period whose end no test meets: the second one since 1970."""


@pytest.fixture
def plain() -> Rota:
    """An app whose database nobody opens."""
    return Rota("sqlite:///nobody-opens-this.db")


def claimed(app: Rota, size: int = 100) -> list[ClaimedJob]:
    """What a worker gets that asks once."""
    with closing(app.database.store.connect()) as connection:
        return claim(
            app.database.store, connection, open_session(app.database.store, connection), size
        )


def test_a_limit_counts_the_jobs_of_cron(app: Rota) -> None:
    """Those that were enqueued and those of due times together are no more than may run."""

    @app.cron(HOURLY, args=("acme",))
    @app.task(name="call", limit=Limit("{tenant}", running=1))
    def call(tenant: str) -> None: ...

    call.enqueue("acme")
    call.enqueue("other")
    [one] = made(app, hours=3)
    assert len(one.jobs) == len(one.due) == 3
    assert sorted(job.args for job in claimed(app)) == ['{"tenant":"acme"}', '{"tenant":"other"}']


def test_a_limit_of_the_task_alone(app: Rota) -> None:
    """Without a key it is that of the task, whoever enqueues."""

    @app.cron(HOURLY)
    @app.task(name="{odd}", limit=Limit(running=1))
    def call() -> None: ...

    call.enqueue()
    made(app)
    assert len(claimed(app)) == 1


def test_a_unique_job_that_waits(app: Rota) -> None:
    """A due time makes none while the last one's is there; its time has been dealt with."""

    @app.cron(HOURLY, name="e", args=(7,))
    @app.task(name="report", unique="tenant:{tenant}")
    def report(tenant: int) -> None: ...

    waiting = report.enqueue(7)
    [one] = made(app, hours=3)
    assert (one.due, one.jobs, one.missed, one.error) == ((), (), None, None)
    [entry] = app.cron.entries()
    assert entry.last is None
    assert entry.due is not None
    assert entry.due > datetime.now(UTC)
    assert waiting.cancel() is State.CANCELLED
    job = app.cron.run("e")
    assert (job.placing, job.duplicate, job.record().unique_key) == (
        Placing.CREATED, False, "tenant:7",
    )  # fmt: skip
    again = app.cron.run("e")
    assert (again.id, again.duplicate) == (job.id, True)
    assert report.enqueue(7).id == job.id
    assert report.enqueue(8).placing is Placing.CREATED


def test_of_several_due_times_one_makes_a_job(app: Rota) -> None:
    """With `skip` the first one does, with `replace` the last one, whose time the job knows."""

    @app.cron(HOURLY, name="skips", args=(1,), due="at")
    @app.cron(HOURLY, name="spread", args=(3,), due="at", jitter=5000)
    @app.task(name="report", unique=Unique(by=("number",)))
    def report(number: int, at: datetime) -> None: ...

    replaces = report.using(unique=Unique(by=("number",), on_conflict="replace"))
    app.cron(HOURLY, name="replaces", args=(2,), due="at")(replaces)
    found = {one.entry: one for one in made(app, hours=3)}
    assert sorted(found) == ["replaces", "skips", "spread"]
    ends = {}
    for name, one in found.items():
        [due], [job] = one.due, one.jobs
        assert app.job(job).record().args.endswith(f'"at":"{due:%Y-%m-%dT%H:%M:%SZ}"}}')
        assert one.missed is None
        assert one.new == one.jobs
        ends[name] = due
    assert ends["replaces"] - ends["skips"] == timedelta(hours=2)
    assert ends["spread"] == ends["skips"]
    lasts = {one.entry.name: one.last for one in app.cron.entries()}
    assert lasts == ends


def test_a_replaced_job(app: Rota) -> None:
    """It gets what the entry says, and the answer is that it was there."""

    @app.task(name="report", unique=Unique(key="one", on_conflict="replace"))
    def report(number: int) -> None: ...

    first = report.using(delay=3600).enqueue(1)
    app.cron.add("e", "@daily", report, args=(2,))
    job = app.cron.run("e")
    assert (job.id, job.placing) == (first.id, Placing.REPLACED)
    assert (job.record().args, job.status) == ('{"number":2}', State.AVAILABLE)


def test_nobody_is_told_of_a_conflict(app: Rota) -> None:
    """`raise` is `skip`: the job that is there is the answer, and other entries are made."""

    @app.cron(HOURLY, name="conflicts")
    @app.task(name="report", unique=Unique(on_conflict="raise"))
    def report() -> None: ...

    @app.cron(HOURLY, name="free")
    @app.task(name="other")
    def other() -> None: ...

    first = report.enqueue()
    assert {one.entry: len(one.jobs) for one in made(app)} == {"conflicts": 0, "free": 1}
    assert app.cron.run("conflicts").id == first.id


def test_a_period(app: Rota) -> None:
    """There is at most one job in it, also where that one has finished."""

    @app.task(name="report", unique=Unique(period=LONG))
    def report() -> None: ...

    app.cron.add("e", "@daily", report)
    first = app.cron.run("e")
    assert first.cancel() is State.CANCELLED
    assert app.cron.run("e").id == first.id


def test_a_fair_share(app: Rota) -> None:
    """A small tenant's entry takes its turn, behind a hundred jobs of others and those of no key."""

    @app.cron(HOURLY, args=("small",))
    @app.task(name="report", fair="{tenant}")
    def report(tenant: str) -> None: ...

    @app.task(name="plain")
    def plain(tenant: str) -> None: ...

    plain.enqueue_many([("none",)] * 100)
    report.enqueue_many([("big",)] * 100)
    made(app)
    first = claimed(app, 30) + claimed(app, 30)
    assert {msgspec.json.decode(job.args)["tenant"] for job in first} == {"none", "big", "small"}


def test_options_of_using(app: Rota) -> None:
    """An entry has those of the task it was declared of, and keeps them when its args change."""

    @app.task(name="call")
    def call(tenant: str, size: int = 1) -> None: ...

    limited = call.using(limit=Limit("{tenant}", running=1), unique="{tenant} {size}")
    app.cron.add("e", "@daily", limited, args=("acme",))
    assert app.cron.run("e").record().unique_key == "acme 1"
    app.cron.change("e", args={"tenant": "other", "size": 2})
    job = app.cron.run("e")
    assert job.record().unique_key == "other 2"
    limited.using(unique="{tenant}").enqueue_many([("acme",), ("other",)])
    assert len(claimed(app)) == 2
    app.cron.change("e", jitter=1)
    assert app.cron.run("e").id == job.id


@pytest.mark.asyncio
async def test_in_async_code(app: Rota) -> None:
    """The twins do the same."""

    @app.task(name="report", unique="{number}")
    def report(number: int) -> None: ...

    await app.cron.aadd("e", "@daily", report, args=(1,))
    first = await app.cron.arun("e")
    assert (await app.cron.arun("e")).id == first.id
    await app.cron.achange("e", args=(2,))
    assert (await (await app.cron.arun("e")).arecord()).unique_key == "2"


def test_in_a_transaction(app: Rota) -> None:
    """A job that was rolled back leaves its key free."""

    @app.task(name="report", unique="one")
    def report() -> None: ...

    app.cron.add("e", "@daily", report)
    tx = app.database.begin()
    assert app.cron.run("e", conn=tx.connection).placing is Placing.CREATED
    assert app.cron.run("e", conn=tx.connection).duplicate
    tx.rollback()
    assert app.cron.run("e").placing is Placing.CREATED


def test_what_is_enqueued_is_told(app: Rota) -> None:
    """A job that is new is an event like any other; one that is there is none."""

    @app.task(name="report", queue="mail", unique="one")
    def report() -> None: ...

    @app.task(name="other", queue="slow")
    def other() -> None: ...

    app.cron.add("e", "@daily", report)
    app.cron.add("f", "@daily", other)
    with app.events.collect(JobsEnqueued) as seen:
        first = app.cron.run("e")
        app.cron.run("e")
        second = app.cron.run("f")
    assert seen == [
        JobsEnqueued(report.name, "mail", (first.id,)),
        JobsEnqueued(other.name, "slow", (second.id,)),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"unique": "report of {day}"},
        {"unique": Unique(by=("number", "day"))},
        {"limit": Limit("{day}", running=1)},
        {"fair": "{day}"},
    ],
)
def test_a_key_of_the_due_time(plain: Rota, options: dict[str, Any]) -> None:
    """It would be another one for each job: refused where it is written, with the reason."""

    def function(number: int, day: datetime) -> None: ...

    report: Task[..., Any, Any] = plain.task(name="report", **options)(function)
    said = (
        r"names 'day', which gets the due time.* each due time makes only one job anyway.*\.using\("
    )
    with pytest.raises(ConfigError, match=said):
        plain.cron("@daily", args=(1,), due="day")(report)
    with pytest.raises(ConfigError, match=said):
        plain.cron.add("e", "@daily", report, args=(1,), due="day")
    assert plain.cron.declared == {}
    plain.cron("@daily", args=(1, datetime(2026, 1, 1, tzinfo=UTC)))(report)


def test_debouncing(plain: Rota) -> None:
    """An entry has its times: a task that waits until nobody asks for it any more is refused."""

    @plain.task(name="report", unique=Unique(on_conflict="debounce"))
    def report() -> None: ...

    for task in (report, report.using(delay=30)):
        with pytest.raises(ConfigError, match=r"debounces.*\.using\(unique=.*'replace'"):
            plain.cron("@daily")(task)
    plain.cron("@daily")(report.using(unique=Unique(on_conflict="replace")))


def test_args_that_make_no_key(app: Rota) -> None:
    """They are refused where the entry gets them, and nothing changes."""

    @app.task(name="report", unique="{tenant}", limit=Limit("{tenant}", running=1))
    def report(tenant: Any) -> None: ...

    for args, said in ((("",), "0 characters"), (([1],), "only text, numbers")):
        with pytest.raises(ArgsError, match=said):
            app.cron("@daily", args=args)(report)
    app.cron.add("e", "@daily", report, args=("acme",))
    before = app.cron.entries()
    with pytest.raises(ArgsError, match="0 characters"):
        app.cron.change("e", args=("",))
    assert app.cron.entries() == before
