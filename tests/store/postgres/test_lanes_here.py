"""Lanes that `rota.enqueue()` makes in a transaction, and jobs from Python in the same one.

To make a lane apart, as is usual, would wait for that transaction without end.
"""

from collections.abc import Iterator

import pytest

from rota import Limit, Unique
from rota.model.job import JobSpec, Keys, Order
from rota.store.postgres.store import PostgresStore
from tests.store.postgres.database import Database, Raw

ARGS = ['{"number":1}']


def order(kind: str, **options: object) -> Order:
    """A job without keys, or with one."""
    spec = JobSpec(
        "shop.send",
        limit=Limit("{number}", running=1) if kind == "limit" else None,
        unique=Unique() if kind == "unique" else None,
        **options,  # type: ignore[arg-type]
    )
    keys = {} if kind == "plain" else {kind: ["one"]}
    return Order(spec, ARGS, Keys(**keys) if keys else None)


@pytest.fixture
def raw(db: Database) -> Iterator[Raw]:
    """A caller's transaction; a connection of Rota's own that waits for it fails."""
    separator = "&" if "?" in db.url else "?"
    db.store = PostgresStore(f"{db.url}{separator}options=-c%20lock_timeout%3D2s")
    raw = db.bare()
    yield raw
    raw.rollback()


@pytest.mark.parametrize("kind", ["plain", "limit", "fair", "unique"])
@pytest.mark.parametrize("savepoint", [False, True])
@pytest.mark.parametrize("priority", [0, 5])
def test_both_in_one_transaction(
    db: Database, raw: Raw, kind: str, *, savepoint: bool, priority: int
) -> None:
    """Both jobs are there after the commit, and nothing waits."""
    if savepoint:
        raw.execute("SAVEPOINT one")
    raw.execute("SELECT rota.enqueue('shop.send', queue => 'default')")
    if savepoint:
        raw.execute("RELEASE one")
    db.inside(raw, db.store.enqueue(order(kind, priority=priority)))
    # Another queue, of the same key, by the same transaction.
    db.inside(raw, db.store.enqueue(order(kind, queue="mail")))
    raw.commit()
    session = db.session()
    assert len(db.claim_all(session)) == 2
    assert len(db.claim(session, queues=["mail"])) == (0 if kind in {"limit", "unique"} else 1)


def test_a_unique_job_in_a_lane_made_from_sql_runs_once(db: Database, raw: Raw) -> None:
    """Claims know that the lane has unique jobs: a replaced one is not handed out as well."""
    raw.execute("SELECT rota.enqueue('shop.send')")
    for _ in range(2):
        spec = JobSpec("shop.send", unique=Unique(on_conflict="replace"))
        db.inside(raw, db.store.enqueue(Order(spec, ARGS, Keys(unique=["one"]))))
    raw.commit()
    assert len(db.claim_all(db.session())) == 2


@pytest.mark.parametrize("kind", ["limit", "unique"])
def test_a_lane_of_another_transaction_is_made_apart(db: Database, raw: Raw, kind: str) -> None:
    """A transaction that began before the lane was made holds no lock of it when it enqueues there."""
    raw.execute("SELECT pg_current_xact_id()")
    db.sql("SELECT rota.enqueue('shop.send')")
    db.inside(raw, db.store.enqueue(order(kind)))
    other = db.bare()
    other.execute("SET lock_timeout = '2s'")
    other.execute("SELECT FROM rota.lane FOR UPDATE")
    other.rollback()
    raw.commit()


def test_a_savepoint_that_was_rolled_back(db: Database, raw: Raw) -> None:
    """With it goes the lane, and further ones are made apart again."""
    raw.execute("SAVEPOINT one")
    raw.execute("SELECT rota.enqueue('shop.send')")
    db.inside(raw, db.store.enqueue(order("limit")))
    raw.execute("ROLLBACK TO one")
    db.inside(raw, db.store.enqueue(order("limit")))
    assert db.one("SELECT count(*) FROM rota.lane") == 2
    raw.commit()
    assert len(db.claim_all(db.session())) == 1


def test_a_transaction_that_has_written_nothing(db: Database, raw: Raw) -> None:
    """It has made no lane, whatever others have made since it began."""
    raw.execute("SELECT age('3'::xid)")
    for _ in range(3):
        db.sql("SELECT rota.enqueue('shop.send')")
    db.inside(raw, db.store.enqueue(order("limit")))
    raw.commit()
    assert len(db.claim_all(db.session())) == 4
