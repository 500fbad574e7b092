"""The lanes of keys in PostgreSQL: turns, rings, held snapshots, and what claims read."""

import pytest

from rota import Limit
from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.states import State
from rota.store.operation import Begin, Query, Statement
from rota.store.postgres import claim_lanes, control, look, rings, settle
from tests.store.factories import run_inside
from tests.store.keying import keys_of, limited
from tests.store.postgres.database import Database, Later, begin, explained, ids
from tests.store.postgres.test_plans import rows_read

ONE = Limit(key="{key}", running=1)


def keyed(db: Database, keys: str | list[str], limit: Limit | None = None) -> list[JobId]:
    """One job for each key."""
    return limited(db.store, db.own, keys, limit)


@pytest.mark.parametrize("forgets", [False, True])
def test_leases_keep_their_places_when_their_table_turns(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """What runs still counts after it was copied; without its limits it would not."""
    monkeypatch.setattr(rings, "LEASE_SIZE", 0)
    if forgets:
        text = rings.LEASE_COPY_FORWARD.text.replace("jobs, limits\n", "jobs, NULL\n")
        assert text != rings.LEASE_COPY_FORWARD.text
        monkeypatch.setattr(rings, "LEASE_COPY_FORWARD", Statement("forgetful", text))
    keyed(db, "aaa", ONE)
    session = db.session()
    [held] = db.claim(session)
    done = [step for _ in range(3) for step in db.own.run(db.store.tidy())]
    assert sum("lease" in step and "empty" in step for step in done) >= 1
    assert len(db.claim(session)) == forgets
    if not forgets:
        assert db.settle(session, [held]) == []
        assert len(db.claim(session)) == 1


@pytest.mark.parametrize("forgets", [False, True])
def test_the_rest_of_a_lease_keeps_its_places(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """Settling a part of a lease frees the places of that part alone."""
    if forgets:
        text = settle.SETTLE_FENCE.text.replace("limits = rest.limits", "limits = NULL")
        assert text != settle.SETTLE_FENCE.text
        monkeypatch.setattr(settle, "SETTLE_FENCE", Statement("generous", text))
    keyed(db, "aabbcc", ONE)
    session = db.session()
    held = {key: job for job in db.claim(session) for key in keys_of([job])}
    assert db.settle(session, [held["b"]]) == []
    assert sorted(keys_of(db.claim(session))) == (["a", "b", "c"] if forgets else ["b"])


@pytest.mark.parametrize("forgets", [False, True])
def test_a_rate_remembers_when_its_table_turns(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """What started within the window is copied; else more would start than may."""
    monkeypatch.setattr(rings, "LIMIT_SIZE", 0)
    if forgets:
        text = rings.LIMIT_COPY_FORWARD.text + " AND false"
        monkeypatch.setattr(rings, "LIMIT_COPY_FORWARD", Statement("forgetful", text))
    keyed(db, "aaaa", Limit(key="{key}", per_hour=2))
    session = db.session()
    assert len(db.claim(session)) == 2
    done = db.own.run(db.store.tidy()) + db.own.run(db.store.tidy())
    assert sum("limit_start" in step and "empty" in step for step in done) >= 1
    assert len(db.claim(session)) == (2 if forgets else 0)


def test_a_claim_waits_for_its_turn(db: Database) -> None:
    """It sees what the one before it has handed out."""
    jobs = keyed(db, "aaaa")
    session = db.session()
    other = db.bare()
    other.execute(control.KEYED_TURN.text)
    waiting = Later(db, db.store.claim(session, ["default"], 10))
    while not db.waits_for(waiting.pid, other.info.backend_pid):
        assert not waiting.ended
    other.rollback()
    assert ids(waiting.result()) == jobs[:2]


def test_a_turn_that_is_not_waited_for(db: Database) -> None:
    """A claim that has jobs already does not wait for its turn, and takes nothing without it."""
    plain = db.enqueue(1, priority=-1)
    jobs = keyed(db, "a")
    session = db.session()
    other = db.bare()
    other.execute(control.KEYED_TURN.text)
    assert ids(db.claim(session)) == plain
    other.rollback()
    assert ids(db.claim(session)) == jobs


def test_plain_claims_take_no_turn(db: Database) -> None:
    """A claim that holds the turn holds up no claim of plain lanes."""
    plain = db.enqueue(3)
    other = db.bare()
    other.execute(control.KEYED_TURN.text)
    assert ids(db.claim(db.session())) == plain


def test_late_transactions_of_a_key(db: Database) -> None:
    """What commits after the cursor has passed it is handed out, under the limit, in parts."""
    spec = JobSpec(task="t", limit=Limit(key="{key}", running=2))
    keyed(db, "a")
    session = db.session()
    assert len(db.claim(session)) == 1
    late = db.store.transaction()
    operation = db.store.enqueue(Order(spec, ['"a"'] * 5, Keys(limit=["a"] * 5)))
    placed = run_inside(db.store, late, operation)
    passed = keyed(db, "aa")
    [second] = db.claim(session)
    assert second.id == passed[0]
    assert db.holes() >= 1
    late.commit()
    db.store.close()
    order: list[JobId] = []
    db.settle(session, [second])
    while jobs := db.claim(session):
        order += ids(jobs)
        db.settle(session, jobs)
    assert order == [*placed, passed[1]]


def test_the_numbers_of_a_rolled_back_enqueue(db: Database) -> None:
    """They are written apart, so they hold all the same; the jobs never were."""
    jobs = keyed(db, "aaa", ONE)
    spec = JobSpec(task="t", limit=Limit(key="{key}", running=2))
    caller = db.bare()
    db.inside(caller, db.store.enqueue(Order(spec, ["{}"], Keys(limit=["a"]))))
    caller.rollback()
    assert ids(db.claim(db.session())) == jobs[:2]


def test_the_plain_lane_counts_for_its_keys(db: Database) -> None:
    """What has finished is told by queue and priority; the mark does not grow with the keys."""
    keyed(db, [str(number) for number in range(50)])
    session = db.session()
    db.settle(session, db.claim_all(session), keep=600.0)
    db.own.run(db.store.squeeze())
    [queue] = db.own.run(db.store.queues())
    assert queue.counts == {State.COMPLETED: 50}
    kinds = "SELECT count(*) FROM rota.counter WHERE state = 'completed'"
    assert db.one(f"{kinds} AND isfinite(expires)") == 1
    assert db.one(kinds) == 2


@pytest.fixture
def thousand(db: Database) -> Database:
    """A thousand keys with three jobs each, and statistics of nothing."""
    keyed(db, [f"tenant {number}" for number in range(1000)] * 3)
    return db


def read(db: Database, query: Query, *, lock: Query | None = None) -> dict[str, float]:
    """How many rows of each kind of table a statement reads."""
    raw = db.bare()
    begin(raw, Begin.HASTY)
    if lock is not None:
        raw.execute(lock.statement.text, dict(lock.params))
    plan = explained(raw, query)
    raw.rollback()
    return {name: rows_read(plan, name) for name in ("log_", "cursor_", "lease_", "lane")}


def test_a_claim_reads_what_it_takes(thousand: Database) -> None:
    """Of a thousand lanes it looks at those that it takes something from."""
    db = thousand
    session = db.session()
    lane = db.one("SELECT id FROM rota.lane WHERE NOT of_key")
    claim = claim_lanes.CLAIM_LANES(
        lane=lane, session=session, size=100, after=0, share=2, most=102, tasks=None
    )
    found = read(db, claim, lock=claim_lanes.KEYED_LOCK(lane=lane, session=session))
    assert found["log_"] <= 110
    assert found["cursor_"] <= 120
    assert found["lane"] <= 120


def test_lanes_without_a_place_are_not_looked_into(thousand: Database) -> None:
    """An idle worker reads nothing of the log for limits that are full."""
    db = thousand
    session = db.session()
    taken = db.claim_all(session)
    assert len(taken) == 2000
    assert max(map(keys_of([*taken]).count, {"tenant 1", "tenant 2"})) == 2
    found = read(db, look.AVAILABLE(queues=["default"], tasks=None))
    assert found["log_"] <= 10
    assert not db.own.run(db.store.look(["default"])).available


def test_claims_are_flat_under_a_held_snapshot(db: Database) -> None:
    """However much has passed, the last claim reads as much as the first one."""
    holder = db.bare()
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    holder.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lane")
    keys = [f"tenant {number}" for number in range(20)]
    session = db.session()
    reads: list[dict[str, float]] = []
    for _ in range(60):
        keyed(db, keys * 5)
        lane = db.one("SELECT id FROM rota.lane WHERE NOT of_key")
        claim = claim_lanes.CLAIM_LANES(
            lane=lane, session=session, size=100, after=0, share=5, most=105, tasks=None
        )
        reads.append(read(db, claim, lock=claim_lanes.KEYED_LOCK(lane=lane, session=session)))
        while jobs := db.claim(session):
            db.settle(session, jobs)
        db.own.run(db.store.tidy())
    for name in ("log_", "cursor_", "lane"):
        assert reads[-1][name] <= reads[1][name] + 5
    # Dead leases are walked until their ring turns: so many that it bounds them.
    assert reads[-1]["lease_"] <= 50
