"""Cron entries whose jobs have keys: who makes them, and that nothing else comes of them."""

import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Limit, Unique
from rota.cron.entry import CronEntry, Missed
from rota.cron.jobs import CronOptions, with_options
from rota.model.enqueued import Placing
from rota.model.job import JobFilter, JobRecord, Keys, Order
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.cron import Made
from rota.store.migrate import migrate
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    open_session,
    run_inside,
    settle,
    settlement,
    spec_of,
)

MINUTE = (datetime.now(UTC).minute + 30) % 60
HOURLY = f"{MINUTE} * * * *"
"""Due at a minute that is far from now: nothing comes due while a test looks."""


def entry_of(name: str, **options: Any) -> CronEntry:
    """An entry that makes up for all its due times, and whose jobs have these options."""
    given = {"attempts_given": False, "timeout_given": False, **options}
    entry = CronEntry(name, HOURLY, "shop.send", missed=Missed.ALL)
    return with_options(entry, CronOptions(**given))


def unique(name: str, key: str = "one", **options: Any) -> CronEntry:
    """An entry of unique jobs."""
    return entry_of(name, unique=Unique(key="x", **options), unique_key=key)


def add(store: Store, connection: Connection, entry: CronEntry, hours: float = 3) -> None:
    """Add an entry that nobody has looked at for so many hours."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    assert connection.run(store.cron.add(entry, since))


def make(store: Store, connection: Connection) -> dict[str, Made]:
    return {one.entry: one for one in connection.run(store.cron.make()).made}


def jobs(store: Store, connection: Connection) -> list[JobRecord]:
    """All jobs, the oldest first."""
    return connection.run(store.list_jobs(JobFilter(limit=10_000)))[::-1]


def test_options_come_back(store: Store, connection: Connection) -> None:
    """As they were written; the entries of code, too, and in a change."""
    plain = entry_of("plain")
    assert plain.options is None
    keyed = entry_of(
        "keyed", unique=Unique(by=("n",), period=timedelta(hours=1)), unique_key="n=1",
        limit=Limit("{n}", running=2, per_hour=3), limit_key="1", fair="{n}", fair_key="1",
    )  # fmt: skip
    add(store, connection, plain)
    session = open_session(store, connection)
    assert connection.run(store.cron.declare(session, [keyed])) == ["keyed"]
    assert [one.entry for one in connection.run(store.cron.entries())] == [keyed, plain]
    assert connection.run(store.cron.change("keyed", {"jitter": 1.0}))
    assert connection.run(store.cron.change("plain", {"options": keyed.options}))
    found = [one.entry for one in connection.run(store.cron.entries())]
    assert found == [replace(keyed, jitter=1.0), replace(plain, options=keyed.options)]


def test_all_kinds_of_keys(store: Store, connection: Connection) -> None:
    """An entry's jobs have each of them; who waits for a limit waits where others of its key do."""
    limit = Limit(key="x", running=1)
    entry = entry_of(
        "e", unique=Unique(key="x"), unique_key="u", limit=limit, limit_key="l", fair="x", fair_key="f",
    )  # fmt: skip
    placed = connection.run(
        store.enqueue(Order(spec_of(limit=limit), ['{"by":"hand"}'], Keys(limit=["l"])))
    ).placed
    add(store, connection, entry)
    made = make(store, connection)["e"]
    assert len(made.jobs) == 1
    assert (made.task, made.queue, made.new) == ("shop.send", "default", made.jobs)
    session = open_session(store, connection)
    [first] = claim(store, connection, session)
    assert first.limited
    settle(store, connection, session, settlement(first, Move.COMPLETE))
    [second] = claim(store, connection, session)
    assert {first.id, second.id} == {placed[0].job, made.jobs[0]}
    assert {first.unique_key, second.unique_key} == {None, "u"}
    settle(store, connection, session, settlement(second, Move.COMPLETE))
    ran = connection.run(store.cron.run("e"))
    assert ran is not None
    assert ran.stored.placings == [Placing.CREATED]


@pytest.mark.parametrize("on_conflict", ["skip", "replace"])
def test_several_at_once(store: Store, connection: Connection, on_conflict: str) -> None:
    """However many make the jobs of entries with one key, there is one."""
    for number in range(6):
        add(store, connection, unique(f"e{number}", on_conflict=on_conflict), hours=10)
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with closing(store.connect()) as own:
                start.wait()
                while make(store, own) or own.run(store.look([], cron=True)).cron == 0:
                    pass
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(jobs(store, connection)) == 1
    session = open_session(store, connection)
    assert len(claim(store, connection, session)) == 1


def test_who_dies_before_the_commit(
    store: Store, connection: Connection, other: Connection
) -> None:
    """Job, key and mark are rolled back together, and somebody else makes the job."""
    add(store, connection, unique("e"))
    transaction = store.transaction()
    [lost] = run_inside(store, transaction, store.cron.make()).made
    assert len(lost.jobs) == 1
    transaction.rollback()
    assert jobs(store, connection) == []
    made = make(store, other)["e"]
    assert made.due == lost.due
    assert [job.id for job in jobs(store, connection)] == list(made.jobs)


def test_a_replaced_job(store: Store, connection: Connection) -> None:
    """One that was enqueued is replaced: the due time has a job, and none is new."""
    [placed] = connection.run(
        store.enqueue(
            Order(spec_of(unique=Unique(key="x"), delay=3600.0), ["{}"], Keys(unique=["one"]))
        )
    ).placed
    add(store, connection, unique("e", on_conflict="replace"))
    made = make(store, connection)["e"]
    assert (made.jobs, made.new, len(made.due)) == ((placed.job,), (), 1)
    [record] = connection.run(store.cron.entries())
    assert record.last == made.due[0]


def test_entries_of_an_older_database(empty_store: Store) -> None:
    """They are there after the migration, with no options, and make their jobs."""
    postgres = empty_store.name == "postgres"
    with closing(empty_store.connect()) as connection:
        for version, sql in empty_store.migrations().items():
            if version < 8:
                connection.run(empty_store.migrate(version, sql))
        transaction = empty_store.transaction()
        driver: Any = transaction.connection
        columns = (
            "name, expression, timezone, missed, jitter, task, args, queue, priority, max_attempts"
        )
        values = f"'old', '{HOURLY}', 'UTC', 'all', 0, 'shop.send', '{{}}', 'default', 0, 5"
        moments = [datetime.now(UTC) - timedelta(hours=3), datetime.now(UTC) - timedelta(hours=2)]
        if postgres:
            driver.execute(f"INSERT INTO rota.cron_entry ({columns}) VALUES ({values})")
            driver.execute("INSERT INTO rota.cron_mark VALUES (1, 1, %s, %s)", moments)
        else:
            seconds = [one.timestamp() for one in moments]
            driver.execute(
                f"INSERT INTO rota_cron_entry ({columns}, created_at, since, due)"
                f" VALUES ({values}, 0, ?, ?)",
                seconds,
            )
        transaction.commit()
        assert migrate(empty_store, connection)[0] == 8
        [record] = connection.run(empty_store.cron.entries())
        assert record.entry == CronEntry("old", HOURLY, "shop.send", missed=Missed.ALL)
        assert len(make(empty_store, connection)["old"].jobs) == 3


def test_options_that_cannot_be_read_here(store: Store, connection: Connection) -> None:
    """An entry that a newer Rota has written is listed and left alone; others go on."""
    for name, options in (
        ("kind", '{"attempts_given":true,"timeout_given":true,"unique":{"on_conflict":"merge"}}'),
        ("type", '{"attempts_given":7,"timeout_given":true}'),
    ):
        add(store, connection, replace(entry_of(name), options=options))
    newer = '{"attempts_given":true,"timeout_given":false,"colour":"red"}'
    add(store, connection, replace(entry_of("more"), options=newer))
    add(store, connection, entry_of("good"))
    made = make(store, connection)
    assert {name: len(one.jobs) for name, one in made.items()} == {
        "kind": 0, "type": 0, "more": 3, "good": 3,
    }  # fmt: skip
    for name in ("kind", "type"):
        assert f"the options of cron entry '{name}' cannot be read; upgrade" in (
            made[name].error or ""
        )
    assert sorted(make(store, connection)) == ["kind", "type"]
    assert len(connection.run(store.cron.entries())) == 4
