"""A failover to a standby that lacks the last commits: ids of what is lost are given a second time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota import Rota, State
from rota.errors import LeaseLost
from rota.measure.servers import PostgresServer
from rota.model.states import Move
from tests.faults.processes import Ledger, until
from tests.fixtures.standby import catch_up, cut_off, either, promote, standby_of
from tests.store.factories import settlement
from tests.store.postgres.database import Database


@pytest.fixture
def standby(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A server that follows the test's own one."""
    with standby_of(postgres_server) as standby:
        yield standby


def fail_over(primary: PostgresServer, standby: PostgresServer) -> None:
    """The primary is gone; the standby, which was cut off before, takes its place."""
    primary.stop()
    promote(standby)


def use_up(url: str) -> None:
    """Give all ids that the standby counts as given: it learns of 32 at a time."""
    with closing(psycopg.connect(url, autocommit=True)) as admin:
        for name in ("job_id", "lease_id", "session_id_seq"):
            while admin.execute(f"SELECT FROM rota.{name} WHERE log_cnt > 0").fetchall():
                admin.execute("SELECT nextval(%s)", [f"rota.{name}"])


def test_the_fence(postgres_server: PostgresServer, standby: PostgresServer) -> None:
    """What a survivor says of a lost job does not touch the job that has its id now."""
    url = postgres_server.create_database("shop")
    with Database(url) as db:
        session = db.session()
        db.enqueue(1)
        db.settle(session, db.claim(session))
        use_up(url)
        catch_up(postgres_server, standby)
        cut_off(standby)
        [lost] = db.enqueue(1)
        [remembered] = db.claim(session)
        assert remembered.id == lost
        young = db.session()
    fail_over(postgres_server, standby)
    with Database(either(url, standby.url.replace("/postgres?", "/shop?"))) as db:
        [new] = db.enqueue(1)
        assert new == lost
        assert not db.own.run(db.store.renew(session)).alive
        with pytest.raises(LeaseLost):
            db.claim(session)
        session_here = db.session()
        assert session_here > young
        [claimed] = db.claim(session_here)
        assert claimed.id == new
        assert claimed.lease > remembered.lease
        told = [settlement(remembered, Move.COMPLETE)]
        for old in (session, young):
            assert db.own.run(db.store.settle(old, told)) == [lost]
        assert db.settle(session_here, [claimed]) == []


def test_a_worker_that_survives(
    postgres_server: PostgresServer, standby: PostgresServer, tmp_path: Path
) -> None:
    """It stops what it runs, and goes on under a new session; no job is taken for another one."""
    url = postgres_server.create_database("shop")
    both = either(url, standby.url.replace("/postgres?", "/shop?"))
    with Ledger(tmp_path, both) as ledger:
        worker = ledger.worker(queues=("long",), session_timeout=15.0)
        kept = ledger.patient.using(max_attempts=1).enqueue(number=0)
        until(lambda: ledger.noted("start")[0], "the first job")
        use_up(url)
        catch_up(postgres_server, standby)
        cut_off(standby)
        lost = ledger.patient.enqueue(number=1)
        until(lambda: ledger.noted("start")[1], "the second job")
        ledger.app.close()
        fail_over(postgres_server, standby)
        new = ledger.patient.using(max_attempts=1).enqueue(number=2)
        assert new.id == lost.id
        until(lambda: "is lost" in worker.said, "the worker to notice")
        until(lambda: ledger.noted("start")[2], "the new job")
        ledger.go()
        until(lambda: not ledger.unfinished(), "everything to complete")
        assert ledger.noted("end") == {0: 1, 2: 1}
        found = {job.id: (job.state, job.attempt) for job in ledger.records()}
        assert found == {kept.id: (State.COMPLETED, 1), new.id: (State.COMPLETED, 1)}
        assert worker.alive
        assert "Traceback" not in worker.said


def test_enqueueing(postgres_server: PostgresServer, standby: PostgresServer) -> None:
    """A producer whose URL names both goes on with the new primary."""
    url = postgres_server.create_database("shop")
    with Database(url):
        pass
    catch_up(postgres_server, standby)
    with Rota(either(url, standby.url.replace("/postgres?", "/shop?"))) as app:

        @app.task(name="send")
        def send() -> None: ...

        send.enqueue()
        catch_up(postgres_server, standby)
        fail_over(postgres_server, standby)
        send.enqueue()
        [queue] = app.database.run(app.database.store.queues())
    assert queue.counts == {State.AVAILABLE: 2}
