"""When a session counts as silent: not while the server was down; dead rows add no cost."""

from contextlib import closing

import pytest

from rota.measure.servers import PostgresServer
from rota.model.job import SessionId
from rota.store.migrate import migrate
from rota.store.operation import Query
from rota.store.postgres import look, sessions
from rota.store.postgres.store import PostgresStore
from tests.store.factories import until
from tests.store.postgres.database import Database, buffers


def test_none_is_silent_since_before_the_servers_start(postgres_server: PostgresServer) -> None:
    """While the server was down no worker could give a sign: the time counts from its start."""
    url = postgres_server.create_database("silent")
    with closing(PostgresStore(url)) as store, closing(store.connect()) as connection:
        migrate(store, connection)
    with Database(url) as db:
        db.enqueue(1)
        [job] = db.claim(db.session(timeout=600.0))
        db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 day'")
    postgres_server.restart()
    with Database(url) as db:
        assert not db.own.run(db.store.look(["default"])).silent
        assert db.own.run(db.store.rescue()) == []
        db.sql("UPDATE rota.session SET timeout = '1 ms'")
        assert db.own.run(db.store.look(["default"])).silent
        [rescue] = db.own.run(db.store.rescue())
        assert rescue.available == (job.id,)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    "statement", ["look", "session_renew", "rescue_lock", "rescue_end", "rescue_take"]
)
def test_looking_beside_dead_heartbeats(db: Database, statement: str) -> None:
    """A day's signs of life that vacuum may not remove are not walked."""
    living = [db.session(timeout=2.0) for _ in range(5)]
    # On a younger server none is silent, and no heartbeat is read.
    until(lambda: db.one("SELECT pg_postmaster_start_time() < now() - interval '3 s'"))
    before = read(db, statement, living)
    for session in living:
        db.sql(
            "INSERT INTO rota.heartbeat SELECT %s, now() - ago * interval '3 s'"
            " FROM generate_series(100, 5000) AS ago",
            session,
        )
    db.own.run(db.store.tidy())
    db.sql("DELETE FROM rota.heartbeat WHERE at < now() - interval '1 minute'")
    after = read(db, statement, living)
    assert after <= 1.5 * before + 10


def read(db: Database, statement: str, living: list[SessionId]) -> int:
    """The buffers that a statement reads while all sessions give signs of life."""
    for session in living:
        db.own.run(db.store.renew(session))
    return buffers(db, query(statement, living))


def query(statement: str, living: list[SessionId]) -> Query:
    """A statement that asks which sessions are silent."""
    if statement == "look":
        return look.LOOK[0](queues=["default"], cron=False, group=None)
    if statement == "session_renew":
        return sessions.SESSION_RENEW(session=living[0])
    if statement == "rescue_end":
        return sessions.RESCUE_END(locked=[])
    if statement == "rescue_take":
        return sessions.RESCUE_TAKE(sessions=living)
    return sessions.RESCUE_LOCK()
