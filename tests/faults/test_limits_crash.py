"""Limits when the server crashes: what was handed out stays handed out.

The server's own writer of its log is kept slow, and pages are not written there as a whole, so a
commit that nobody waits for is lost in a crash.
"""

from types import ModuleType

import pytest

from rota import Limit
from rota.measure.servers import PostgresServer
from rota.model.job import ClaimedJob
from rota.model.states import State
from rota.store.operation import Statement
from rota.store.postgres import at_once, claim_lanes
from tests.store.keying import limited
from tests.store.postgres.database import Database, ids

SLOW = {
    "wal_writer_delay": "10s",
    "full_page_writes": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
}
NOBODY_WAITS = {**SLOW, "synchronous_commit": "off"}

LIMITS = (Limit("{key}", running=1), Limit("{key}", per_hour=1))


def crashed(
    server: PostgresServer, db: Database, key: str, limit: Limit
) -> tuple[list[ClaimedJob], list[ClaimedJob], bool]:
    """What is handed out before a crash and after it, and whether the first can still be settled."""
    limited(db.store, db.own, [key] * 3, limit)
    session, other = db.session(), db.session()
    # So many that one look at each lane is enough.
    before = db.claim(session, 300)
    db.own.close()
    server.restart(mode="immediate")
    running = {job.state for job in db.own.run(db.store.get(ids(before)))} == {State.RUNNING}
    after = db.claim(other)
    kept = running and db.settle(session, before) == []
    db.settle(other, after)
    return before, after, kept


@pytest.mark.parametrize(
    "postgres_server", [SLOW, NOBODY_WAITS], ids=["default", "nobody waits"], indirect=True
)
def test_limited_claims_outlive_a_crash(postgres_server: PostgresServer) -> None:
    """Jobs that were handed out are still leased, and count; no other one of the limit starts."""
    with Database(postgres_server.create_database("limits")) as db:
        for number, limit in enumerate(LIMITS):
            before, after, kept = crashed(postgres_server, db, f"key {number}", limit)
            assert len(before) == 1
            assert after == []
            assert kept
            left = db.claim(db.session())
            assert len(left) == (1 if limit.running else 0)


@pytest.mark.parametrize("where", [claim_lanes, at_once], ids=["after", "along"])
@pytest.mark.parametrize("postgres_server", [SLOW], ids=["default"], indirect=True)
def test_limited_claims_that_nobody_waited_for(
    postgres_server: PostgresServer, where: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: without the flush the crash frees places, and jobs are handed out twice."""
    monkeypatch.setattr(where, "FLUSH", Statement("no_flush", "SELECT 1"))
    # The server may happen to write its log just then.
    for number in range(5):
        with Database(postgres_server.create_database(f"limits{number}")) as db:
            if where is at_once:
                # After a claim with limits the next one's flush goes along with it.
                limited(db.store, db.own, ["first"], LIMITS[0])
                assert len(db.claim(db.session())) == 1
            before, after, kept = crashed(postgres_server, db, f"key {number}", LIMITS[number % 2])
            if after:
                assert not kept
                assert ids(before) == ids(after)
                return
    pytest.fail("no claim was undone by a crash")
