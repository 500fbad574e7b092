"""Jobs with a key and a limit in prepared transactions, enqueued and settled, beside an old snapshot."""

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from rota import Limit, Unique
from rota.model.enqueued import Placed, Placing
from rota.model.job import ClaimedJob, JobSpec, Keys, Order
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Operation
from rota.store.postgres import settle_write
from tests.store import factories
from tests.store.factories import until
from tests.store.postgres.counting import right
from tests.store.postgres.database import KEEP, Database, Later, Raw, ids

EITHER = pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
LEVELS = pytest.mark.parametrize(
    "level", [psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ]
)


pytestmark = pytest.mark.usefixtures("held")


@pytest.fixture
def gid(db: Database) -> Iterator[str]:
    """The name of a prepared transaction; it does not stay."""
    name = f"rota {secrets.token_hex(4)}"
    yield name
    if db.one("SELECT count(*) FROM pg_prepared_xacts WHERE gid = %s", name):
        db.sql(f"ROLLBACK PREPARED '{name}'")


def placing(db: Database, *keys: str) -> Operation[list[Placed]]:
    """The operation that enqueues a unique job for each key; of all of them one runs at once."""
    spec = JobSpec("shop.send", unique=Unique(), limit=Limit("api", running=1), wake=False)
    order = Order(spec, ["{}"] * len(keys), Keys(unique=keys, limit=["api"] * len(keys)))
    return factories.placing(db.store, order)


def completing(job: ClaimedJob) -> list[Settlement]:
    """What completes a job and keeps it."""
    settlement = Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP, unique_key=job.unique_key)
    return [settlement]


def opened(db: Database, level: psycopg.IsolationLevel) -> Raw:
    """A connection of a caller's."""
    raw = db.bare()
    raw.isolation_level = level
    return raw


def prepare(raw: Raw, gid: str) -> None:
    """Prepare the transaction of a connection, and end that."""
    raw.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    raw.close()


def asked(db: Database, key: str) -> Later[list[Placed]]:
    """A producer that enqueues the same key, and waits for the outcome."""
    later = Later(db, placing(db, key))
    until(lambda: db.one("SELECT pg_blocking_pids(%s) <> '{}'", later.pid) or None)
    return later


@EITHER
@LEVELS
def test_enqueued(db: Database, gid: str, level: psycopg.IsolationLevel, how: str) -> None:
    """While prepared, a key is kept for its job, and no place; then both are as decided."""
    raw = opened(db, level)
    first, second = db.inside(raw, placing(db, "a", "c"))
    prepare(raw, gid)
    [other] = db.own.run(placing(db, "b"))
    session = db.session()
    [held] = db.claim(session)
    assert held.id == other.job
    third = asked(db, "a")
    assert right(db)
    db.sql(f"{how} PREPARED '{gid}'")
    [found] = third.result()
    assert (found == Placed(first.job, Placing.SKIPPED)) is (how == "COMMIT")
    assert (found.placing is Placing.CREATED) is (how == "ROLLBACK")
    assert db.claim(session) == []
    assert right(db)
    order = [found.job]
    if how == "COMMIT":
        order.append(second.job)
    else:
        assert db.own.run(placing(db, "c"))[0].placing is Placing.CREATED
    for job in order:
        assert db.own.run(db.store.settle(session, completing(held))) == []
        [held] = db.claim(session)
        assert held.id == job
        assert db.claim(session) == []
    assert right(db)


@EITHER
@LEVELS
def test_settled(db: Database, gid: str, level: psycopg.IsolationLevel, how: str) -> None:
    """While prepared, key and place are the job's; then they are free together, or are not."""
    first, second = db.own.run(placing(db, "a", "b"))
    session = db.session()
    [held] = db.claim(session)
    assert held.id == first.job
    raw = opened(db, level)
    assert db.inside(raw, db.store.settle(session, completing(held)), notify=False) == []
    prepare(raw, gid)
    third = asked(db, "a")
    assert db.claim(session) == []
    assert right(db)
    db.sql(f"{how} PREPARED '{gid}'")
    [found] = third.result()
    if how == "COMMIT":
        assert found.placing is Placing.CREATED
        assert db.own.run(db.store.settle(session, completing(held))) == [held.id]
    else:
        assert found == Placed(first.job, Placing.SKIPPED)
        assert db.claim(session) == []
        assert db.own.run(db.store.settle(session, completing(held))) == []
        assert db.own.run(placing(db, "a"))[0].placing is Placing.CREATED
    [done] = db.own.run(db.store.get([first.job]))
    assert done.state is State.COMPLETED
    assert ids(db.claim(session)) == [second.job]
    assert db.claim(session) == []
    assert right(db)


def test_a_settlement_that_forgets_the_key(
    db: Database, gid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: if the key's end is not part of the transaction, it stays taken for ever."""
    monkeypatch.setattr(settle_write, "keys_end", lambda _: iter(()))
    [first] = db.own.run(placing(db, "a"))
    session = db.session()
    [held] = db.claim(session)
    raw = db.bare()
    assert db.inside(raw, db.store.settle(session, completing(held)), notify=False) == []
    prepare(raw, gid)
    db.sql(f"COMMIT PREPARED '{gid}'")
    assert db.own.run(placing(db, "a")) == [Placed(first.job, Placing.SKIPPED)]
