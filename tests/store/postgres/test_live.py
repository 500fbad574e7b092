"""What a look of `rota top` costs, and what it sees of others."""

import secrets
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from rota.store.execute import drive
from rota.store.operation import Apart, Begin, Query, Request, Rows
from rota.store.postgres import health, live
from rota.store.postgres import jobs as lookup
from rota.store.postgres.store import PostgresStore
from rota.top.snapshot import look
from tests.store.factories import until
from tests.store.postgres.database import Database, begin, explained
from tests.store.postgres.test_plans import rows_read, scans

MANY = 20_000

STATEMENTS = [lookup.QUEUES(), health.LANES(), health.SESSIONS()]


@pytest.fixture
def busy(db: Database) -> Database:
    """Many jobs in every place, and totals of them."""
    db.enqueue(MANY)
    db.enqueue(MANY, queue="mail", priority=3)
    session = db.session()
    db.settle(session, db.claim(session, MANY // 2), keep=3600.0)
    db.claim(session, 50)
    db.enqueue(MANY, delay=3600.0)
    # As workers do about once a second; a mark that is new enough is left as it is.
    until(lambda: db.own.run(db.store.squeeze()) or None)
    return db


@pytest.mark.parametrize("query", STATEMENTS, ids=lambda query: query.statement.name)
@pytest.mark.parametrize("analysed", [False, True])
def test_no_job_is_scanned(busy: Database, query: Query, *, analysed: bool) -> None:
    """Ends of indexes only: a few rows, however many jobs there are."""
    if analysed:
        busy.sql("ANALYZE")
    raw = busy.bare(autocommit=True)
    begin(raw, Begin.READING)
    plan = explained(raw, query)
    for node in scans(plan, "log_"):
        assert node["Node Type"] in {"Index Scan", "Index Only Scan"}, node
    # Other tests' transactions are holes, and each costs a probe.
    assert rows_read(plan, "log_") <= 200
    for table in ("finished", "timer"):
        assert scans(plan, table) == []


def test_counting_would_be_seen(busy: Database) -> None:
    """The mutant: a statement that does count is found out by the checks above."""
    raw = busy.bare(autocommit=True)
    begin(raw, Begin.READING)
    counting = type(lookup.QUEUES)("counting", "SELECT count(*) FROM rota.log")
    plan = explained(raw, counting())
    assert rows_read(plan, "log_") > MANY


def test_how_many_statements(busy: Database) -> None:
    """A look is five statements, and reads only."""
    seen: list[str] = []

    class Counting:
        def run(self, operation: Any) -> Any:
            assert operation.begin in {Begin.NOTHING, Begin.READING}
            return drive(operation.steps, self.execute)

        def execute(self, request: Request) -> Rows:
            match request:
                case Apart():
                    return [(self.run(request.operation),)]
                case Query():
                    seen.append(request.statement.name)
                    found: Rows = busy.admin.execute(
                        request.statement.text, request.params or None
                    ).fetchall()
                    return found
                case _:
                    raise AssertionError(request)

    snapshot = look(busy.store, Counting(), "")
    assert len(snapshot.queues) == 2
    assert seen == [
        "queues", "health_lanes", "health_sessions", "health_holders", "transactions_hidden",
    ]  # fmt: skip


def test_who_holds_the_horizon(db: Database) -> None:
    """An open transaction is seen with its process and its application."""
    name = f"report {secrets.token_hex(4)}"
    held = db.bare(name=name)
    held.execute("SELECT pg_current_xact_id()")
    [holder] = [holder for holder in db.own.run(db.store.horizon()).holders if holder.name == name]
    assert holder.pid == held.info.backend_pid
    assert holder.state == "idle in transaction"
    assert holder.seconds is not None
    assert holder.seconds >= 0
    held.rollback()
    assert name not in {holder.name for holder in db.own.run(db.store.horizon()).holders}


def test_what_a_role_may_not_see(db: Database) -> None:
    """A role without rights counts the sessions whose transactions it cannot see."""
    role = f"rota_test_{secrets.token_hex(6)}"
    held = db.bare()
    held.execute("SELECT pg_current_xact_id()")
    db.sql(f"CREATE ROLE {role}")
    url = f"{db.url}{'&' if '?' in db.url else '?'}options=-c%20role%3D{role}"
    store = PostgresStore(url)
    with closing(store.connect()) as connection:
        assert connection.run(live.horizon()).hidden >= 1
    assert db.own.run(live.horizon()).hidden == 0
    db.sql(f"DROP ROLE {role}")


def _only_reads(db: Database, options: str) -> bool:
    """What a store that connects with these options says of itself; it can look in any case."""
    url = f"{db.url}{'&' if '?' in db.url else '?'}options={quote(options)}"
    with closing(PostgresStore(url)) as store, closing(store.connect()) as own:
        assert own.run(store.queues()) == []
        return own.run(store.read_only())


def test_who_may_only_read(db: Database) -> None:
    """A role that may not write what is done, or whose setting forbids it, knows; others may write."""
    role = f"looker_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {role}")
    try:
        db.sql(f"GRANT USAGE ON SCHEMA rota TO {role}")
        db.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA rota TO {role}")
        assert _only_reads(db, f"-c role={role}")
        db.sql(f"GRANT INSERT ON rota.audit TO {role}")
        assert not _only_reads(db, f"-c role={role}")
        assert _only_reads(db, "-c default_transaction_read_only=on")
    finally:
        db.sql(f"DROP OWNED BY {role}")
        db.sql(f"DROP ROLE {role}")
