"""Unique jobs of cron entries beside transactions that are about to store one of the same key."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota import Unique
from rota.cron.entry import CronEntry, Missed
from rota.cron.jobs import CronOptions, with_options
from rota.model.job import JobSpec, Keys, Order
from rota.store.cron import HELD
from rota.store.operation import Query
from rota.store.postgres import cron
from rota.store.postgres.failures import LockTimeout
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, Raw


def add(db: Database, name: str, key: str | None = None, jitter: float = 0.0) -> None:
    """An entry that has missed three runs, and whose jobs have a unique key."""
    minute = (datetime.now(UTC).minute + 30) % 60
    entry = CronEntry(name, f"{minute} * * * *", "shop.send", missed=Missed.ALL, jitter=jitter)
    if key is not None:
        given = CronOptions(
            attempts_given=False, timeout_given=False, unique=Unique(key="x"), unique_key=key
        )
        entry = with_options(entry, given)
    assert db.own.run(db.store.cron.add(entry, datetime.now(UTC) - timedelta(hours=3)))


def make(db: Database, aside: list[int] | None = None) -> dict[str, int]:
    """How many jobs each entry that was dealt with has got."""
    done = db.own.run(db.store.cron.make(aside=aside or ()))
    if aside is not None:
        aside[:] = done.aside
    return {one.entry: len(one.jobs) for one in done.made}


def enqueue(db: Database, conn: Raw, key: str) -> None:
    """Enqueue a unique job in a caller's transaction."""
    spec = JobSpec("shop.send", unique=Unique(key="x"))
    db.inside(conn, db.store.enqueue(Order(spec, ["{}"], Keys(unique=[key]))))


def waits(db: Database, pid: int) -> bool | None:
    """Whether a process of the server waits for a lock."""
    found = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
    return bool(db.one(found, pid)) or None


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("jitter", [0.0, 5000.0])
def test_a_key_that_a_transaction_has(db: Database, end: str, jitter: float) -> None:
    """The entry is dealt with when the transaction has ended; others are at once."""
    add(db, "before", "1")
    add(db, "taken", "key", jitter=jitter)
    add(db, "after", "2")
    add(db, "plain")
    caller = db.bare()
    enqueue(db, caller, "key")
    assert make(db) == {"before": 1, "after": 1, "plain": 3}
    assert make(db) == {}
    getattr(caller, end)()
    assert make(db) == {"taken": 0 if end == "commit" else 1}
    assert make(db) == {}
    assert db.one("SELECT count(*) FROM rota.unique_key") == 3


def test_many_keys_that_a_transaction_has(db: Database) -> None:
    """A round gives up few of them and commits; next rounds begin with others while there are any."""
    add(db, "before", "1")
    held = {f"taken {number}": f"key {number:03}" for number in range(HELD + 2)}
    for name, key in held.items():
        add(db, name, key)
    add(db, "after", "2")
    caller = db.bare()
    for key in held.values():
        enqueue(db, caller, key)
    aside: list[int] = []
    assert make(db, aside) == {"before": 1}
    assert len(aside) == HELD
    assert make(db, aside) == {"after": 1}
    assert len(aside) == len(set(aside)) == HELD + 2
    first = aside[0]
    assert make(db, aside) == {}
    assert aside.index(first) == 2, "those that had their turn wait for the others"
    caller.rollback()
    assert make(db, aside) == dict.fromkeys(held, 1)
    assert aside == []


def test_the_patience_for_other_locks(db: Database) -> None:
    """The short one is for keys: an entry that comes after that waits as long as it always did."""
    add(db, "unique", "key")
    raw = db.bare()
    [made] = db.inside(raw, db.store.cron.make()).made
    assert len(made.jobs) == 1
    assert raw.execute("SHOW lock_timeout").fetchone() == ("50ms",)


def test_who_would_wait_for_it(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: with unlimited patience upkeep stands still while the transaction is open."""
    monkeypatch.setattr(cron, "DIALECT", replace(cron.DIALECT, attempt=()))
    add(db, "taken", "key")
    add(db, "plain")
    caller = db.bare()
    enqueue(db, caller, "key")
    making = Later(db, db.store.cron.make())
    until(lambda: waits(db, making.pid))
    assert not making.ended
    caller.rollback()
    assert len(making.result().made) == 2


def test_another_lock(db: Database) -> None:
    """Where a plain entry's jobs cannot be stored, no other entry's are undone alone."""
    add(db, "unique", "key", jitter=1e9)
    add(db, "plain")
    holder = db.bare()
    # The lane is there: making one would wait for that lock, too.
    enqueue(db, holder, "other")
    holder.rollback()
    holder.execute("LOCK TABLE rota.log IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(LockTimeout):
        make(db)
    holder.rollback()
    assert db.one("SELECT count(*) FROM rota.timer") == 0
    assert make(db) == {"unique": 1, "plain": 3}


def test_keys_in_another_order(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that has one key and wants the other one is not ended by a deadlock."""
    add(db, "one", "z")
    add(db, "two", "a")
    caller = db.bare()
    enqueue(db, caller, "a")
    wants: list[threading.Thread] = []
    mark = cron.DIALECT.mark

    def marks(**params: object) -> Query:
        # The maker has the key z by now, and asks for a next.
        if not wants:
            wants.append(threading.Thread(target=enqueue, args=(db, caller, "z")))
            wants[0].start()
            until(lambda: waits(db, caller.info.backend_pid))
        return mark(**params)

    monkeypatch.setattr(cron, "DIALECT", replace(cron.DIALECT, mark=marks))  # type: ignore[arg-type]
    assert make(db) == {"one": 1}
    wants[0].join()
    caller.commit()
    assert make(db) == {"two": 0}
    assert db.one("SELECT count(*) FROM rota.log") == 2
