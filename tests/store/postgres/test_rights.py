"""The rights that the pages name are enough, and needed."""

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota.cron.entry import CronEntry, Missed
from rota.doctor.examine import examine
from rota.doctor.finding import Finding, Severity
from rota.errors import ConfigError
from rota.model.history import ALL, KEPT
from rota.model.job import JobId, SessionInfo
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.postgres import rings
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.store import PostgresStore
from tests.store.factories import minutes_pass
from tests.store.postgres.database import KEEP, Database

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "tables.md"
GRANTS = re.findall(r"^GRANT .* TO app;$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def role(db: Database) -> Iterator[str]:
    """A role that may nothing yet."""
    name = f"app_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {name}")
    yield name
    db.sql(f"DROP OWNED BY {name}")
    db.sql(f"DROP ROLE {name}")


@pytest.fixture
def own(db: Database, role: str) -> Iterator[PostgresConnection]:
    """A connection of Rota's own, as that role."""
    separator = "&" if "?" in db.url else "?"
    connection = PostgresStore(f"{db.url}{separator}options=-c%20role%3D{role}").connect()
    yield connection
    connection.close()


def test_what_the_page_grants_is_enough(
    db: Database, role: str, own: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enqueueing, working, acting by hand and turning every ring."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(rings, "HISTORY_AGE", -10.0)
    assert len(GRANTS) == 3
    for grant in GRANTS:
        db.sql(grant.replace(" TO app;", f" TO {role}"))
    store = db.store
    jobs = db.enqueue(3, on=own)
    db.enqueue(1, on=own, delay=0.0, queue="another")
    info = SessionInfo(host="alpha", pid=1, queues=("default",), timeout=600.0)
    session = own.run(store.open_session(info))
    claimed = own.run(store.claim(session, ["default"], 2))
    settlements = [Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP) for job in claimed]
    assert own.run(store.settle(session, settlements)) == []
    own.run(store.cancel(jobs[2:]))
    own.run(store.retry(jobs[:1]))
    own.run(store.delete(jobs[1:2]))
    own.run(store.renew(session))
    own.run(store.stage(10))
    own.run(store.rescue())
    own.run(store.squeeze())
    assert own.run(store.look(["default"])).unrecorded
    assert own.run(store.history.record())
    own.run(store.history.read(ALL, since=0, step=1))
    entry = CronEntry("e", "@hourly", "shop.send", missed=Missed.ALL)
    own.run(store.cron.add(entry, datetime.now(UTC) - timedelta(hours=2)))
    own.run(store.cron.declare(session, [replace(entry, jitter=1.0)]))
    assert [len(one.jobs) for one in own.run(store.cron.make()).made] == [2]
    own.run(store.cron.remove("e"))
    own.run(store.set_queue("default", {"concurrency": 1}))
    own.run(store.queue_settings())
    own.run(store.claim(session, ["default"], 2, most={"default": 1}))
    for state in State:
        last = own.run(store.last_job())
        own.run(store.clear("another", state, after=JobId(0), until=last, limit=5))
    own.run(store.pause("default"))
    own.run(store.resume("default"))
    assert [queue.name for queue in own.run(store.queues())] == ["another", "default"]
    done = [line for _ in range(4) for line in own.run(store.tidy())]
    assert any("is empty again" in line for line in done)
    minutes_pass(store, db.own, 2 * KEPT)
    assert "history: segment 0 is empty again" in own.run(store.tidy())


@pytest.mark.parametrize("left_out", range(3))
def test_each_of_them_is_needed(
    db: Database, role: str, own: PostgresConnection, left_out: int
) -> None:
    """Without any one of them not even an enqueue works."""
    for number, grant in enumerate(GRANTS):
        if number != left_out:
            db.sql(grant.replace(" TO app;", f" TO {role}"))
    with pytest.raises(ConfigError, match="permission denied"):
        db.enqueue(1, on=own)
    found = finding(db, role)
    assert found.severity is Severity.WARNING
    assert found.advice == GRANTS[left_out].replace(" TO app;", f' TO "{role}";')


def test_the_doctor_on_rights(db: Database, role: str) -> None:
    """All is well, one is gone, only reading is left: each with the statement that helps."""
    for grant in GRANTS:
        db.sql(grant.replace(" TO app;", f" TO {role}"))
    assert finding(db, role).severity is Severity.OK
    db.sql(f"REVOKE DELETE, TRUNCATE ON rota.lease_0, rota.lease_1 FROM {role}")
    db.sql(f"REVOKE UPDATE ON SEQUENCE rota.log_turn FROM {role}")
    db.sql(f"REVOKE SELECT ON rota.counter FROM {role}")
    found = finding(db, role)
    assert found.severity is Severity.WARNING
    assert "Missing: UPDATE on sequence log_turn; DELETE, TRUNCATE on table" in found.detail
    assert "on table lease_0, lease_1; SELECT on view counter." in found.detail
    for grant in GRANTS[1:]:
        db.sql(grant.replace(" TO app;", f" TO {role}"))
    assert finding(db, role).severity is Severity.OK
    db.sql(f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA rota FROM {role}")
    db.sql(f"REVOKE USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA rota FROM {role}")
    found = finding(db, role)
    assert (found.severity, found.title) == (Severity.NOTE, f"Role {role} may only read")
    assert found.advice == " ".join(
        grant.replace(" TO app;", f' TO "{role}";') for grant in GRANTS[1:]
    )
    db.sql(f"GRANT INSERT, UPDATE, DELETE, TRUNCATE ON rota.queue TO {role}")
    assert finding(db, role).severity is Severity.WARNING
    db.sql(f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON rota.queue FROM {role}")
    db.sql(f"REVOKE SELECT ON rota.timer FROM {role}")
    assert finding(db, role).severity is Severity.WARNING


def finding(db: Database, role: str) -> Finding:
    """What the doctor says about a role's rights."""
    separator = "&" if "?" in db.url else "?"
    store = PostgresStore(f"{db.url}{separator}options=-c%20role%3D{role}")
    with closing(store.connect()) as connection:
        found = examine(store, connection).findings
    [rights] = [rights for rights in found if rights.subject == "rights"]
    return rights
