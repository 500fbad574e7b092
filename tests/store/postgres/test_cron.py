"""Cron on PostgreSQL: what a held snapshot costs, and what keeps two from making the same job."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rota.cron.entry import CronEntry, Missed
from rota.database.recognise import blocking_caller
from rota.store.execute import drive
from rota.store.operation import Begin, Query, Request, Rows
from rota.store.postgres import look
from rota.store.postgres.cron import DIALECT
from tests.store.postgres.database import Database, begin, explained

HOURS = 300


def add(db: Database, name: str = "e", hours: int = HOURS) -> None:
    """An entry that has missed some runs, none of which is due within the next minutes."""
    minute = (datetime.now(UTC).minute + 30) % 60
    entry = CronEntry(name, f"{minute} * * * *", "shop.send", missed=Missed.ALL)
    since = datetime.now(UTC) - timedelta(hours=hours)
    assert db.own.run(db.store.cron.add(entry, since))


def jobs(db: Database) -> int:
    return int(db.one("SELECT count(*) FROM rota.log"))


def blocks(db: Database, statement: Query) -> int:
    """How many blocks a statement reads."""
    raw = db.bare(autocommit=True)
    begin(raw, Begin.DURABLE)
    plan = explained(raw, statement)
    raw.execute("ROLLBACK")
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def statements(db: Database) -> Iterator[Query]:
    """What workers ask about entries: at each look, and when one is due."""
    number = db.one("SELECT id FROM rota.cron_entry")
    yield look.LOOK[0](queues=["default"], cron=True, group=None)
    yield DIALECT.lock(size=50, aside=[])
    yield DIALECT.take(entries=[number])


def test_a_held_snapshot_costs_nothing(db: Database) -> None:
    """However often the entry came due under it, the statements read as many blocks as before."""
    add(db)
    db.own.run(db.store.cron.make(1, 1))
    before = [blocks(db, statement) for statement in statements(db)]
    held = db.bare()
    held.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    held.execute("SELECT count(*) FROM rota.cron")
    for _ in range(HOURS - 20):
        [made] = db.own.run(db.store.cron.make(1, 1)).made
        assert len(made.jobs) == 1
    assert db.one("SELECT count(*) FROM rota.cron_mark") == 10
    db.sql("VACUUM rota.cron_mark")
    assert held.execute("SELECT count(*) FROM rota.cron_mark").fetchone() == (2,)
    after = [blocks(db, statement) for statement in statements(db)]
    # A level more in the index, and a table that has grown by a block.
    assert all(now <= then + 6 for now, then in zip(after, before, strict=True)), (before, after)


def test_who_is_late_in_an_old_snapshot(db: Database) -> None:
    """The key of the marks keeps jobs from being made twice, whatever a transaction has seen."""
    add(db, hours=2)
    db.enqueue()
    late = db.bare()
    late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    late.execute("SELECT 1 FROM rota.cron_mark")
    [made] = db.own.run(db.store.cron.make()).made
    assert len(made.jobs) == 2
    steps = db.store.cron.make().steps
    with pytest.raises(Exception, match="cron_mark_pkey") as refused:
        drive(steps, blocking_caller(late).execute)
    assert isinstance(refused.value.__cause__, errors.UniqueViolation)
    late.rollback()
    assert jobs(db) == 1 + 2


def test_what_the_lock_has_seen_may_be_old(db: Database) -> None:
    """An entry that was dealt with between the snapshot of the lock and the lock is left alone."""
    add(db, hours=2)
    number = db.one("SELECT id FROM rota.cron_entry")
    db.own.run(db.store.cron.make())
    raw = db.bare()
    execute = blocking_caller(raw).execute

    def as_if_just_before(request: Request) -> Rows:
        if isinstance(request, Query) and request.statement is DIALECT.lock:
            return [(number,)]
        return execute(request)

    assert drive(db.store.cron.make().steps, as_if_just_before).made == []
    raw.commit()
    assert jobs(db) == 2


def test_two_do_not_wait_for_each_other(db: Database) -> None:
    """While one entry is locked, others are dealt with."""
    add(db, "one", hours=2)
    add(db, "two", hours=2)
    holder = db.bare()
    holder.execute("SELECT 1 FROM rota.cron_entry WHERE name = 'one' FOR UPDATE")
    made: list[Any] = db.own.run(db.store.cron.make()).made
    assert [one.entry for one in made] == ["two"]
    holder.rollback()
    made = db.own.run(db.store.cron.make()).made
    assert [one.entry for one in made] == ["one"]


def test_no_row_versions_per_due_time(db: Database) -> None:
    """Making jobs changes no row that was there."""
    add(db)
    rows = (
        "SELECT ctid::text, xmin::text FROM rota.cron_entry "
        "UNION ALL SELECT ctid::text, xmin::text FROM rota.cron_mark"
    )
    before = set(db.sql(rows))
    db.own.run(db.store.cron.make())
    assert before < set(db.sql(rows))
