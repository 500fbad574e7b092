"""Logical replication: with a publication a queue goes on, and the doctor says what that means."""

import pytest

from rota.doctor.examine import examine
from rota.doctor.finding import Finding, Severity
from rota.errors import StoreUnavailable
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.postgres import rings
from tests.store.postgres.database import KEEP, Database, ids

UNNAMED = """
    SELECT entry.relname FROM pg_class AS entry
    WHERE relnamespace = 'rota'::regnamespace AND relkind IN ('r', 'p') AND relreplident <> 'f'
      AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = entry.oid AND indisprimary)"""


def test_every_row_can_be_named(db: Database) -> None:
    """Each table has a primary key, or names its rows by all columns."""
    assert db.sql(UNNAMED) == []


def test_work_beside_a_publication_of_all_tables(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that changes or deletes rows goes on."""
    for ring in (
        "LOG_SIZE",
        "CURSOR_SIZE",
        "LEASE_SIZE",
        "TALLY_SIZE",
        "NOTE_SIZE",
        "FINISHED_SIZE",
    ):
        monkeypatch.setattr(rings, ring, 0)
    db.sql("CREATE PUBLICATION everything FOR ALL TABLES")
    jobs = db.enqueue(12)
    session = db.session()
    first, *rest = db.claim(session, 6)
    assert db.settle(session, [first], keep=KEEP) == []
    failed = [Settlement(rest[0].id, rest[0].lease, Move.RETRY, 0.0, None, "[]")]
    assert db.own.run(db.store.settle(session, failed)) == []
    assert db.settle(session, rest[1:], Move.DISCARD) == []
    assert db.own.run(db.store.stage(10)).staged == 1
    assert db.own.run(db.store.renew(session)).alive
    db.own.run(db.store.cancel([jobs[-1]]))
    db.own.run(db.store.retry([jobs[-1]]))
    db.own.run(db.store.delete([jobs[0], jobs[-2]]))
    db.own.run(db.store.squeeze())
    done = [line for _ in range(4) for line in db.own.run(db.store.tidy())]
    assert any("is empty again" in line for line in done)
    held = db.claim(session, 2)
    db.silence(session)
    [rescue] = db.own.run(db.store.rescue())
    assert sorted(rescue.available) == sorted(ids(held))
    successor = db.session()
    assert db.settle(successor, db.claim_all(successor)) == []
    db.own.run(db.store.close_session(successor))
    assert [job.state for job in db.own.run(db.store.get(jobs[2:4]))] == [State.DISCARDED] * 2


def test_naming_rows_costs_nothing(db: Database) -> None:
    """Below `wal_level = logical` a deletion writes as much as without a replica identity."""
    if db.one("SHOW wal_level") == "logical":
        pytest.skip("this server writes what subscribers need")
    db.enqueue(100)
    db.claim(db.session())
    written = {}
    for identity in ("FULL", "NOTHING"):
        plan = {"WAL FPI": 1}
        while plan["WAL FPI"]:  # a page is written whole at first, and after each checkpoint
            raw = db.bare()
            raw.execute(f"ALTER TABLE rota.lease_0 REPLICA IDENTITY {identity}")
            raw.execute("UPDATE rota.lease SET jobs = jobs")
            found = raw.execute(
                "EXPLAIN (ANALYZE, WAL, FORMAT JSON) DELETE FROM rota.lease"
            ).fetchone()
            assert found is not None
            plan = found[0][0]["Plan"]
            raw.rollback()
        written[identity] = plan["WAL Bytes"]
    assert written["FULL"] == written["NOTHING"] > 0


def test_what_the_server_says(db: Database) -> None:
    """A refusal is not called a server that cannot be reached."""
    db.sql("ALTER TABLE rota.lease_0 REPLICA IDENTITY NOTHING")
    db.sql("CREATE PUBLICATION everything FOR ALL TABLES")
    db.enqueue(1)
    session = db.session()
    jobs = db.claim(session)
    with pytest.raises(StoreUnavailable, match=r"refuses for now: .*replica identity"):
        db.settle(session, jobs)


def found(db: Database) -> list[Finding]:
    """What the doctor says about replication."""
    report = examine(db.store, db.own)
    assert "replication" not in report.facts.unseen
    return [finding for finding in report.findings if finding.subject == "replication"]


def test_the_doctor_on_publications(db: Database) -> None:
    """A publication that has Rota's tables is named, with the statement that leaves them out."""
    db.sql("CREATE TABLE public.shop (id integer PRIMARY KEY)")
    db.sql("CREATE PUBLICATION mine FOR TABLE public.shop")
    assert found(db) == []
    db.sql("CREATE PUBLICATION everything FOR ALL TABLES")
    [one] = found(db)
    assert one.severity is Severity.WARNING
    assert "everything" in one.title
    assert one.advice.startswith('DROP PUBLICATION "everything"; CREATE PUBLICATION "everything"')
    db.sql("DROP PUBLICATION everything")
    db.sql("ALTER PUBLICATION mine ADD TABLE rota.log, rota.origin")
    [one] = found(db)
    db.sql(one.advice)
    assert found(db) == []
