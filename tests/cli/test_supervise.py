"""`rota supervise`."""

import json
import secrets
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from rota.store.postgres.supervise import end, open_transactions
from tests.cli.calling import read_until, refused, rota, started
from tests.store.factories import until
from tests.store.postgres.database import Database, Raw

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with Database(postgres_url) as database:
        yield database


@pytest.fixture
def name() -> str:
    """An application name that no other test's sessions have."""
    return f"forgotten-{secrets.token_hex(4)}"


def opened(db: Database, name: str) -> Raw:
    """A session that has forgotten to commit."""
    raw = db.bare(name=name)
    raw.execute("SELECT 'secret of a customer', pg_current_xact_id()")
    return raw


def lives(raw: Raw) -> bool:
    """Whether a session is still in its transaction."""
    try:
        raw.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def said(db: Database, *options: object) -> list[dict[str, Any]]:
    """The lines of one round about this test's database."""
    database = db.one("SELECT current_database()")
    result = rota(
        "supervise", "--once", "--older-than", "0", "--json", "--database", database, *options,
        url=db.url,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_dry_run(db: Database, name: str) -> None:
    """Without --end no session is ended; those that would be are named, without the query."""
    raw = opened(db, name)
    [line] = said(db, "--application", name)
    assert (line["action"], line["pid"]) == ("would_end", raw.info.backend_pid)
    assert (line["application"], line["state"]) == (name, "idle in transaction")
    assert line["seconds"] >= 0
    assert "query" not in line
    [line] = said(db, "--application", name, "--show-query")
    assert "secret of a customer" in line["query"]
    assert lives(raw)


def test_only_the_named_transaction_is_ended(db: Database, name: str) -> None:
    """Other transactions of the same user and database are spared."""
    right, other = opened(db, name), opened(db, f"{name}-other")
    [line] = said(db, "--application", name, "--end")
    assert (line["action"], line["pid"]) == ("ended", right.info.backend_pid)
    assert not lives(right)
    assert lives(other)


def test_rules(db: Database, name: str) -> None:
    """User, database, age and idleness each spare what they do not fit."""
    raw = opened(db, name)
    user = db.one("SELECT current_user::text")
    assert said(db, "--application", name, "--user", "nobody-of-this-name") == []
    assert said(db, "--application", name, "--older-than", "1h") == []
    assert len(said(db, "--application", name, "--user", user, "--user", "somebody")) == 1
    assert len(said(db, "--application", name, "--idle-only")) == 1
    outside = rota(
        "supervise", "--once", "--older-than", "0", "--json", "--application", name,
        "--database", "template1", url=db.url,
    )  # fmt: skip
    assert outside.stdout == ""
    assert lives(raw)


def test_only_idle_ones(db: Database, name: str) -> None:
    """With --idle-only a session that waits for a lock in its transaction is spared."""
    holder = db.bare(name="holder")
    holder.execute("LOCK TABLE rota.queue")
    with psycopg.connect(db.url, autocommit=True, application_name=name) as busy:
        pid = busy.info.backend_pid
        busy.pgconn.send_query(b"SELECT * FROM rota.queue")
        until(lambda: db.waits_for(pid, holder.info.backend_pid) or None)
        assert said(db, "--application", name, "--idle-only") == []
        assert [line["pid"] for line in said(db, "--application", name)] == [pid]
        busy.pgconn.finish()
    holder.rollback()


def test_rota_itself_is_spared(db: Database) -> None:
    """Rota's own sessions are never ended, whatever the rules say; users' transactions are."""
    own = db.own.raw()
    own.execute("BEGIN")
    own.execute("SELECT pg_current_xact_id()")
    transaction = db.store.transaction()
    transaction.connection.execute("SELECT pg_current_xact_id()")
    lines = said(db, "--end")
    assert [(line["action"], line["application"]) for line in lines] == [
        ("ended", "rota.transaction")
    ]
    assert lives(own)
    own.execute("ROLLBACK")
    transaction.connection.close()
    refused(
        rota("supervise", "--once", "--application", "rota", url=db.url), 2, "Rota's own sessions"
    )


def test_a_name_in_the_url(db: Database, name: str) -> None:
    """An application name that the URL gives Rota's connections is spared."""
    raw = opened(db, name)
    url = f"{db.url}{'&' if '?' in db.url else '?'}application_name={name}"
    database = db.one("SELECT current_database()")
    result = rota(
        "supervise", "--once", "--older-than", "0", "--database", database, "--end", url=url
    )
    assert (result.exit_code, result.stdout) == (0, "")
    assert lives(raw)


def test_prepared_transactions_are_reported(db: Database) -> None:
    """They are reported with what to do, and stay."""
    gid = f"it's {secrets.token_hex(4)}"
    raw = db.bare()
    raw.tpc_begin(gid)
    raw.execute("CREATE TABLE made (id int)")
    raw.tpc_prepare()
    raw.close()
    try:
        lines = said(db, "--end")
        left = db.one("SELECT count(*) FROM pg_prepared_xacts WHERE gid = %s", gid)
    finally:
        db.admin.tpc_rollback(gid)
    [line] = [line for line in lines if line.get("gid") == gid]
    assert line["action"] == "prepared"
    assert line["advice"] == f"ROLLBACK PREPARED 'it''s {gid[5:]}';"
    assert left == 1


def test_a_transaction_that_is_over(db: Database, name: str) -> None:
    """Between the look and the end a session may have gone on; then it is left alone."""
    raw = opened(db, name)
    [forgotten] = [
        seen for seen in db.own.run(open_transactions(0.0)).open if seen.application == name
    ]
    raw.commit()
    raw.execute("SELECT 1")
    assert db.own.run(end(forgotten)) is None
    assert lives(raw)


def test_without_a_rule(db: Database, name: str) -> None:
    """--end alone would mean all transactions, and is refused."""
    raw = opened(db, name)
    for options in ([], ["--idle-only"]):
        result = rota("supervise", "--once", "--end", *options, url=db.url)
        refused(result, 2, "--user, --application or --database")
    assert lives(raw)


def test_without_rights(db: Database, name: str) -> None:
    """A role that may not look says so; a role that may not end others fails with 1."""
    raw = opened(db, name)
    role = f"rota_test_{secrets.token_hex(6)}"
    db.sql(f"CREATE ROLE {role}")
    url = f"{db.url}{'&' if '?' in db.url else '?'}options=-c%20role%3D{role}"
    words = ["supervise", "--once", "--older-than", "0", "--application", name, "--end"]
    try:
        blind = rota(*words, url=url)
        db.sql(f"GRANT pg_read_all_stats TO {role}")
        weak = rota(*words, url=url)
    finally:
        db.sql(f"DROP ROLE {role}")
    assert "hidden: " in blind.stdout
    assert "pg_read_all_stats" in blind.stdout
    assert weak.exit_code == 1, weak.output
    assert "refused: pid" in weak.stdout
    assert lives(raw)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals(db: Database, name: str, how: signal.Signals) -> None:
    """It looks again and again, names each transaction once, and stops in order on a signal."""
    words = ["supervise", "--older-than", "0", "--every", "1s", "--application", name]
    first = opened(db, name)
    with started(*words, url=db.url) as process:
        read_until(process.stdout, f"would end: pid {first.info.backend_pid},")
        second = opened(db, name)
        told = read_until(process.stdout, f"would end: pid {second.info.backend_pid},")
        assert str(first.info.backend_pid) not in told
        process.send_signal(how)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "dry run: nothing is ended without --end\n"


def test_sqlite() -> None:
    """SQLite has no sessions."""
    refused(rota("supervise", "--once", url="sqlite:///none.db"), 2, "SQLite")


@pytest.mark.parametrize(
    "words",
    [
        ["--older-than", "soon"],
        ["--older-than", "10"],
        ["--older-than", "10.5"],
        ["--every", "0.1s"],
        ["--every", "5"],
        ["--database", ""],
    ],
)
def test_bad_durations(words: list[str]) -> None:
    """Wrong durations are refused."""
    result = rota("supervise", *words, url="postgresql:///none")
    assert result.exit_code == 2
    assert words[0] in result.stderr
