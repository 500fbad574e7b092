"""A dump beside turning rings has everything that its snapshot had."""

from collections.abc import Iterator

import pytest

from rota.model.job import JobId
from rota.model.states import State
from rota.store.postgres import clearing, rings
from rota.store.postgres.store import PostgresStore
from tests.cli.by_hand import psql
from tests.fixtures.postgres import created
from tests.store.factories import until
from tests.store.postgres.database import Database, Raw, dumped, ids


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the rings."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, ring, 0)


@pytest.fixture
def elsewhere(pytestconfig: pytest.Config) -> Iterator[str]:
    """The URL of another database on the same server."""
    with created(pytestconfig) as (_, url):
        yield url


def snapshot(db: Database, kept: list[Raw]) -> str:
    """What a dump begins with: a snapshot, and no lock."""
    raw = db.bare(name="pg_dump")
    raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = raw.execute("SELECT pg_export_snapshot()").fetchone()
    assert found is not None
    kept.append(raw)
    return str(found[0])


def at_work(db: Database) -> tuple[list[JobId], list[JobId], list[JobId]]:
    """Jobs that are done, that run, and that wait, in a lane that was handed out in part."""
    done, held, waiting = db.enqueue(3), db.enqueue(2), db.enqueue(4)
    session = db.session()
    assert db.settle(session, db.claim(session, 3)) == []
    assert ids(db.claim(session, 2)) == held
    db.own.run(db.store.squeeze())
    return done, held, waiting


def goes_on(url: str, held: list[JobId], waiting: list[JobId]) -> None:
    """In the restored database jobs wait, jobs that ran come back, and new ones are handed out."""
    with Database(url) as db:
        new = db.enqueue(2)
        session = db.session()
        for (dead,) in db.sql("SELECT id FROM rota.session WHERE id <> %s", session):
            db.silence(dead)
        db.own.run(db.store.rescue())
        [queue] = db.own.run(db.store.queues())
        assert queue.counts == {State.AVAILABLE: len([*held, *waiting, *new])}
        assert sorted(ids(db.claim_all(session))) == sorted([*held, *waiting, *new])


def test_a_dump_that_began_before(
    db: Database, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds that follow soon after its snapshot truncate nothing that it needs."""
    monkeypatch.setattr(clearing, "REST", 600.0)
    _, held, waiting = at_work(db)
    kept: list[Raw] = []
    began = snapshot(db, kept)
    for _ in range(4):
        db.own.run(db.store.tidy())
    [session] = [row[0] for row in db.sql("SELECT id FROM rota.session")]
    assert db.settle(session, db.claim_all(session)) == []
    for _ in range(4):
        db.own.run(db.store.tidy())
    psql(elsewhere, dumped(db.url, f"--snapshot={began}"), "-v", "ON_ERROR_STOP=1")
    goes_on(elsewhere, held, waiting)


def test_a_dump_between_two_rounds(db: Database, elsewhere: str) -> None:
    """What a truncation moved was moved in a round before, so the dump has it elsewhere."""
    _, held, waiting = at_work(db)
    kept: list[Raw] = []
    done: list[str] = []
    for _ in range(10):
        began = snapshot(db, kept)
        done = db.own.run(db.store.tidy())
        if any("cursor" in line and "empty" in line for line in done):
            break
    assert any("cursor" in line and "empty" in line for line in done)
    psql(elsewhere, dumped(db.url, f"--snapshot={began}"), "-v", "ON_ERROR_STOP=1")
    goes_on(elsewhere, held, waiting)


def test_a_table_that_another_worker_truncated(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker knew of a table before is not taken for what it is now."""
    # Longer than no time at all, and shorter than any two rounds lie apart.
    monkeypatch.setattr(clearing, "REST", 1e-9)
    session, other = db.session(), PostgresStore(db.url)

    def round_of(store: PostgresStore, awaited: str) -> bool:
        """A claim and a round of housekeeping; whether it did this."""
        db.enqueue(1)
        db.claim(session, 1)
        return any(done.startswith(awaited) for done in db.own.run(store.tidy()))

    left, emptied = "cursor: table 0 is left", "cursor: table 0 is empty again"
    until(lambda: round_of(other, left) or None)
    assert not round_of(db.store, emptied)
    until(lambda: round_of(other, emptied) or None)
    until(lambda: round_of(other, left) or None)
    assert not round_of(db.store, emptied)


@pytest.mark.parametrize("foreign", [False, True])
def test_a_lane_without_a_cursor(db: Database, *, foreign: bool) -> None:
    """As an older dump may have left it: the first worker begins it anew, and nothing is lost."""
    done, held, waiting = at_work(db)
    db.sql("DELETE FROM rota.cursor")
    if foreign:
        db.sql("UPDATE rota.origin SET system_identifier = 1")
    new = db.enqueue(1)
    assert sorted(ids(db.claim_all(db.session()))) == sorted([*done, *held, *waiting, *new])
    assert db.own.run(db.store.queues())[0].counts.get(State.AVAILABLE, 0) == 0
