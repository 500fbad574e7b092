"""What asking for the counts costs, and what it does where nothing may be written."""

import secrets
from collections.abc import Iterator
from contextlib import closing

import pytest

from rota.errors import RotaError
from rota.model.states import State
from rota.store.operation import Begin
from rota.store.postgres import counters, rings
from rota.store.postgres import jobs as lookup
from rota.store.postgres.store import PostgresStore
from tests.store.postgres.counting import marks, queue, right, squeeze
from tests.store.postgres.database import KEEP, Database, buffers

SQUEEZE = counters.SQUEEZE


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every tidying turns the rings, and a mark whenever one is asked for."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


def test_asking_squeezes_where_much_has_come(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a worker, each question makes the next one cheap."""
    monkeypatch.setattr(lookup, "MUCH", 100)
    db.enqueue(99)
    before = marks(db)
    assert queue(db).counts == {State.AVAILABLE: 99}
    assert marks(db) == before
    db.enqueue(1)
    assert queue(db).counts == {State.AVAILABLE: 100}
    assert marks(db) == before + 1
    assert queue(db).counts == {State.AVAILABLE: 100}
    assert marks(db) == before + 1


@pytest.fixture
def reader(db: Database) -> Iterator[PostgresStore]:
    """The store of a user that may only read."""
    role = f"reader_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {role}")
    db.sql(f"GRANT USAGE ON SCHEMA rota TO {role}")
    db.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA rota TO {role}")
    separator = "&" if "?" in db.url else "?"
    yield PostgresStore(f"{db.url}{separator}options=-c%20role%3D{role}")
    db.sql(f"DROP OWNED BY {role}")
    db.sql(f"DROP ROLE {role}")


def test_asking_where_nothing_may_be_written(
    db: Database, reader: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user that may only read gets the same answer, again and again."""
    monkeypatch.setattr(lookup, "MUCH", 1)
    db.enqueue(7)
    before = marks(db)
    with closing(reader.connect()) as own:
        with pytest.raises(RotaError):
            own.run(reader.squeeze())
        for _ in range(2):
            [found] = own.run(reader.queues())
            assert found.counts == {State.AVAILABLE: 7}
    assert marks(db) == before


def test_behind_a_pooler(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking and squeezing work in callers' transactions, too."""
    monkeypatch.setattr(lookup, "MUCH", 1)
    db.enqueue(7)
    separator = "&" if "?" in db.url else "?"
    pooled = PostgresStore(f"{db.url}{separator}pooler=transaction")
    with closing(pooled.connect()) as own:
        [found] = own.run(pooled.queues())
        assert found.counts == {State.AVAILABLE: 7}
        assert marks(db) == 1
        db.enqueue(1)
        assert own.run(pooled.squeeze())
    assert right(db)


def reading(db: Database) -> int:
    """The buffers that asking touches, where the connection knows the tables already."""
    return buffers(db, lookup.QUEUES(), kind=Begin.READING)


def test_asking_costs_the_same_for_a_thousand_jobs_and_for_many(db: Database) -> None:
    """What is available, waits or is finished is not looked at."""
    session = db.session()
    costs = []
    for count in (1000, 99_000):
        db.enqueue(count)
        db.enqueue(count // 10, delay=600.0)
        db.settle(session, db.claim(session, count // 10), keep=KEEP)
        squeeze(db)
        costs.append(reading(db))
        assert right(db)
    few, many = costs
    assert many <= 2 * few, costs  # rows lie on more pages or fewer, as it happens
    assert many < 200, costs


def test_counting_would_cost_more(db: Database) -> None:
    """The measure has teeth: without a squeeze the log is walked."""
    db.enqueue(1000)
    few = reading(db)
    db.enqueue(30_000)
    assert reading(db) > 5 * few


@pytest.mark.usefixtures("held")
def test_asking_under_a_held_snapshot(db: Database) -> None:
    """Dead leases, old marks and old changes stay where they are, and are not walked."""
    session = db.session()

    def work(claims: int) -> tuple[int, int]:
        for _ in range(claims // 100):
            db.enqueue(100)
            for _ in range(100):
                db.settle(session, db.claim(session, 1), keep=KEEP)
            squeeze(db)
        db.enqueue(50)
        db.claim(session, 10)
        squeeze(db)
        squeezing = buffers(db, SQUEEZE(age=0.0))
        db.settle(session, db.claim_all(session))
        return reading(db), squeezing

    work(100)
    before = work(100)
    after = work(1000)
    assert right(db)
    # A walk over what is dead would touch a thousand.
    assert after[0] <= 1.5 * before[0] + 200, (before, after)
    assert after[1] <= 1.5 * before[1] + 200, (before, after)
