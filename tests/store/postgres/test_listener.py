"""The end of jobs on PostgreSQL: nothing is sent while no process waits."""

from contextlib import closing
from typing import Any

import pytest

from rota.errors import StoreUnavailable
from rota.model.states import Move
from rota.store.operation import Statement
from rota.store.postgres import settle
from rota.store.postgres.listener import IDS
from rota.store.postgres.store import PostgresStore
from tests.fixtures.postgres import LOCKS
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Raw


@pytest.fixture
def eavesdropper(db: Database) -> Raw:
    """A connection that hears everything and does not say that it waits."""
    raw = db.bare(autocommit=True)
    raw.execute("LISTEN rota_ended")
    return raw


def sent(raw: Raw) -> list[str]:
    """The notifications so far: the database's own order of commits brings them before this one."""
    raw.execute("NOTIFY rota_ended, 'all'")
    payloads: list[str] = []
    while "all" not in payloads:
        payloads += [notice.payload for notice in raw.notifies(timeout=1, stop_after=1)]
    return [payload for payload in payloads if payload != "all"]


@pytest.mark.parametrize("waiting", [True, False])
@pytest.mark.parametrize("part", [True, False])
def test_nobody_waits(db: Database, eavesdropper: Raw, *, waiting: bool, part: bool) -> None:
    """A settlement notifies if a process waits, and only then; of a lease settled in part, too."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    with closing(db.store.listener()) as listener:
        if waiting:
            listener.listen()
        db.settle(session, jobs[:1] if part else jobs, keep=KEEP)
        told = sent(eavesdropper)
    ended = jobs[:1] if part else jobs
    assert told == ([",".join(str(job.id) for job in ended)] if waiting else [])


def test_the_settlement_costs_no_statement(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settlement runs no further statement where no process waits."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    asked: list[str] = []
    real = db.own._execute

    def execute(request: Any) -> object:
        if hasattr(request, "statement"):
            asked.append(request.statement.name)
        return real(request)

    monkeypatch.setattr(db.own, "_execute", execute)
    db.settle(session, jobs, keep=KEEP)
    assert asked == ["settle_at_once"]


@pytest.mark.parametrize("keep", [0.0, KEEP])
def test_more_than_a_notification_holds(db: Database, eavesdropper: Raw, keep: float) -> None:
    """All jobs of a large lease are told of."""
    session = db.session()
    jobs = db.enqueue(2 * IDS + 1)
    with closing(db.store.listener()) as listener:
        listener.listen()
        db.settle(session, db.claim(session, len(jobs)), keep=keep)
    told = sent(eavesdropper)
    assert len(told) == 3
    assert [int(job) for part in told for job in part.split(",")] == jobs


def test_who_has_closed_does_not_wait(db: Database, eavesdropper: Raw) -> None:
    """The lock goes with the connection, also if that breaks."""
    session = db.session()
    with closing(db.store.listener()) as listener:
        listener.listen()
        raw: Raw = listener.connection.raw()
        db.sql("SELECT pg_terminate_backend(%s)", raw.info.backend_pid)
        until(lambda: db.one(f"SELECT count(*) FROM {LOCKS} WHERE classid = 7682007") == 0 or None)
        db.enqueue()
        db.settle(session, db.claim(session), Move.DISCARD)
        assert sent(eavesdropper) == []
        with pytest.raises(StoreUnavailable):
            listener.wait(20)
        assert listener.listen()
        db.enqueue()
        [job] = db.claim(session)
        db.settle(session, [job], Move.DISCARD)
        assert listener.wait(20) == {job.id}


def test_a_settlement_that_is_rolled_back(
    db: Database, eavesdropper: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was rolled back is not heard of."""
    session = db.session()
    db.enqueue()
    [job] = db.claim(session)
    with closing(db.store.listener()) as listener:
        listener.listen()
        with monkeypatch.context() as broken:
            notified = "SELECT pg_notify('rota_ended', %(jobs)s), %(parts)s, 1 / 0"
            given = "%(firsts)s, %(lasts)s, %(keep)s, %(lease)s, %(session)s"
            broken.setattr(settle, "SETTLE_AT_ONCE", Statement("broken", f"{notified}, {given}"))
            with pytest.raises(Exception, match="division"):
                db.settle(session, [job], keep=KEEP)
        assert sent(eavesdropper) == []
        db.settle(session, [job], keep=KEEP)
        assert sent(eavesdropper) == [str(job.id)]


def test_two_who_settle_at_once(db: Database, eavesdropper: Raw) -> None:
    """A look at the lock is over at once: it does not outlive its statement."""
    session = db.session()
    db.enqueue(2)
    one, two = db.claim(session, 1), db.claim(session, 1)
    open_one = db.bare()
    [(_, _, waited)] = open_one.execute(
        settle.SETTLE_WHOLE.text,
        {"lease": one[0].lease, "session": session, "jobs": f"{{{one[0].id}}}"},
    ).fetchall()
    assert waited is False
    db.settle(session, two, keep=KEEP)
    assert sent(eavesdropper) == []
    open_one.rollback()


def test_behind_a_pooler(db: Database) -> None:
    """Such a store does not listen, and holds no lock that would stay for other clients."""
    separator = "&" if "?" in db.url else "?"
    with closing(PostgresStore(f"{db.url}{separator}pooler=transaction").listener()) as listener:
        assert listener.listen()
        assert db.one(f"SELECT count(*) FROM {LOCKS} WHERE classid = 7682007") == 0
        assert (
            db.one("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN rota_e%'") == 0
        )
        assert listener.wait(0.01) == ()


def test_a_lock_of_another_process(db: Database) -> None:
    """Only processes that wait for jobs hold the lock: workers asleep have others."""
    waker = db.store.waker(["default"])
    with closing(waker):
        waker.wait(0.0)
        assert db.one(f"SELECT count(*) FROM {LOCKS} WHERE locktype = 'advisory'") >= 1
        assert db.one(f"SELECT count(*) FROM {LOCKS} WHERE classid = 7682007") == 0
