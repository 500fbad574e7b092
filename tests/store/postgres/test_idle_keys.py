"""Keys that are not used any more: no cursor, no look, and the counts stay right."""

import pytest

from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.states import State
from rota.store.operation import Statement
from rota.store.postgres import claim_lanes, counters, look, rings
from rota.store.postgres import jobs as lookup
from tests.store.factories import run_inside
from tests.store.keying import keys_of, limited
from tests.store.postgres.counting import queue, right, squeeze, tidy
from tests.store.postgres.database import Database, ids
from tests.store.postgres.test_keyed_lanes import ONE, keyed, read

IDLE = 40


@pytest.fixture(params=["few", "many"], autouse=True)
def lanes(request: pytest.FixtureRequest, db: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    """As many as there are, and so many that only those with rows in the log are walked."""
    if request.param == "many":
        db.sql("SELECT setval('rota.lane_id_seq', 5000)")
        text = claim_lanes.CLAIM_LANES.text.replace("<= 2000", "<= 0")
        assert text != claim_lanes.CLAIM_LANES.text
        monkeypatch.setattr(claim_lanes, "CLAIM_LANES", Statement("claim_lanes", text))
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    return str(request.param)


def settled(db: Database) -> None:
    """All jobs are done, and the log is empty again."""
    session = db.session()
    while jobs := db.claim(session):
        db.settle(session, jobs)
    tidy(db, 6)
    assert sum(db.sizes()) == 0


def cursors(db: Database) -> int:
    """How many key lanes have a cursor entry."""
    found = db.one(
        "SELECT count(DISTINCT lane) FROM rota.cursor JOIN rota.lane ON lane.id = lane WHERE of_key"
    )
    assert isinstance(found, int)
    return found


@pytest.fixture
def idle(db: Database) -> Database:
    """Many keys that have had a job each."""
    keyed(db, [f"tenant {number}" for number in range(IDLE)], ONE)
    settled(db)
    return db


def test_an_idle_key_has_no_cursor(idle: Database, lanes: str) -> None:
    """It is at its beginning, and what comes is handed out from there, in order and once."""
    db = idle
    assert cursors(db) == 0
    assert right(db)
    # Where there are many lanes, the totals of those that are idle begin anew.
    told = IDLE if lanes == "few" else 0
    assert (queue(db).appended, queue(db).claimed) == (told, told)
    jobs = keyed(db, ["tenant 7"] * 3, ONE)
    assert right(db)
    session = db.session()
    order: list[JobId] = []
    while taken := db.claim(session):
        order += ids(taken)
        assert len(taken) == 1
        db.settle(session, taken)
    assert order == jobs
    assert right(db)
    assert cursors(db) == 1


def test_idle_keys_are_not_walked(idle: Database, lanes: str) -> None:
    """Where there are many keys, claims, looks and counts read only those in use."""
    db = idle
    session = db.session()
    keyed(db, "aaab", ONE)
    squeeze(db)
    lane = db.one("SELECT id FROM rota.lane WHERE NOT of_key")
    claim = claim_lanes.CLAIM_LANES(
        lane=lane, session=session, size=10, after=0, share=5, most=15, tasks=None
    )
    found = read(db, claim, lock=claim_lanes.KEYED_LOCK(lane=lane, session=session))
    asked = [found] + [
        read(db, query)
        for query in (
            look.AVAILABLE(queues=["default"], tasks=None),
            counters.SQUEEZE(age=0.0),
            lookup.QUEUES(),
        )
    ]
    for reads in asked:
        assert reads["cursor_"] <= 10
        if lanes == "many":
            # A claim counts the lanes of its queue first, up to 2,000 of them.
            assert reads["lane"] <= 20 + (IDLE if reads is found else 0)


@pytest.mark.parametrize("early", [False, True])
def test_a_lane_with_rows_keeps_its_cursor(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, early: bool
) -> None:
    """Without it what was handed out would be handed out again."""
    if early:
        text = rings.CURSOR_REPEAT.text
        hasty = text.replace("NOT lane.of_key OR EXISTS", "NOT lane.of_key OR NOT EXISTS")
        assert hasty != text
        monkeypatch.setattr(rings, "CURSOR_REPEAT", Statement("hasty", hasty))
    monkeypatch.setattr(rings, "LOG_SIZE", 1 << 30)
    keyed(db, "aa", ONE)
    session = db.session()
    [held] = db.claim(session)
    tidy(db, 4)
    assert cursors(db) == (0 if early else 1)
    db.settle(session, [held])
    again = held.id in ids(db.claim(session))
    assert again == early


@pytest.mark.parametrize("forgets", [False, True])
def test_what_an_idle_key_has_handed_out_goes_on_counting(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """Its plain lane's tally has it; else its jobs would seem to be available again."""
    if forgets:
        text = rings.CURSOR_LEAVE.text.replace("newest.taken > 0", "false")
        assert text != rings.CURSOR_LEAVE.text
        monkeypatch.setattr(rings, "CURSOR_LEAVE", Statement("forgetful", text))
    keyed(db, [f"tenant {number}" for number in range(IDLE)], ONE)
    settled(db)
    assert cursors(db) == 0
    assert right(db) != forgets
    assert queue(db).counts == ({State.AVAILABLE: IDLE} if forgets else {})


def test_a_job_that_is_being_enqueued_while_its_key_is_idle(idle: Database) -> None:
    """Its transaction may last longer than the lane's cursor; it is handed out when it commits."""
    db = idle
    keyed(db, ["tenant 1"], ONE)
    session = db.session()
    held = db.claim(session)
    spec = JobSpec(task="t", limit=ONE)
    turn = "SELECT setval('rota.log_turn', last_value + 1) FROM rota.log_turn"
    db.sql(turn)
    late = db.store.transaction()
    late_one = db.store.enqueue(Order(spec, ["{}"] * 2, Keys(limit=["tenant 1"] * 2)))
    [one, two] = run_inside(db.store, late, late_one)
    db.sql(turn)
    # Its cursor has passed the transaction, and knows of a hole.
    second = keyed(db, ["tenant 1"], ONE)
    db.settle(session, held)
    held = db.claim(session)
    assert ids(held) == second
    assert db.holes() >= 1
    db.settle(session, held)
    # Its rows keep their segment from being truncated: the others' shall not lie there.
    tidy(db, 6)
    assert cursors(db) == 0
    late.commit()
    order: list[JobId] = []
    while taken := db.claim(session):
        order += ids(taken)
        db.settle(session, taken)
    assert order == [one, two]
    assert right(db)
    db.store.close()


def test_rounds_of_many_keys(idle: Database) -> None:
    """They go on where the last one ended, and begin again."""
    db = idle
    keys = [f"tenant {number}" for number in range(0, IDLE, 4)]
    keyed(db, keys * 3, ONE)
    session = db.session()
    served: list[str] = []
    while taken := db.claim(session, 4):
        served += keys_of(taken)
        db.settle(session, taken)
    assert sorted(served[: len(keys)]) == sorted(keys)
    assert sorted(served[len(keys) : 2 * len(keys)]) == sorted(keys)
    assert len(served) == 3 * len(keys)


def test_other_lanes_are_passed_by(idle: Database) -> None:
    """A claim of one queue takes from no other one's keys, and the first priority comes first."""
    db = idle
    limited(db.store, db.own, "abc", ONE, queue="other")
    last = limited(db.store, db.own, "def", ONE, priority=5)
    jobs = keyed(db, "ghi", ONE)
    session = db.session()
    assert ids(db.claim(session, 2)) == jobs[:2]
    assert ids(db.claim(session)) == [*jobs[2:], *last]


def test_keys_of_one_queue_do_not_burden_the_others(idle: Database, lanes: str) -> None:
    """An idle worker looks at them once, however many queues there are."""
    db = idle
    keyed(db, [f"tenant {number}" for number in range(IDLE)], ONE)
    session = db.session()
    held = db.claim(session)
    assert len(held) == IDLE
    queues = ["default", *(f"queue {number}" for number in range(10))]
    for name in queues:
        db.enqueue(1, queue=name)
    limited(db.store, db.own, "ab", ONE, queue="queue 1")
    db.claim_all(session)
    found = read(db, look.AVAILABLE(queues=queues, tasks=None))
    assert found["log_"] <= (2 * IDLE if lanes == "many" else 10)
    assert found["cursor_"] <= 30
    assert found["lane"] <= 5 * IDLE


FLIP = """
CREATE SEQUENCE rota.flip MINVALUE 0 START 0;
CREATE OR REPLACE VIEW rota.lane_few AS SELECT nextval('rota.flip') % 2 = 0 AS few;
"""


@pytest.mark.parametrize("twice", [False, True])
def test_the_lane_that_makes_them_many(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, twice: bool
) -> None:
    """It may be made while a claim goes on; asked again it would take all jobs twice, or none."""
    session = db.session()
    db.sql(FLIP)
    text = claim_lanes.CLAIM_LANES.text.replace("<= 2000", "<= 0")
    if twice:
        assert text.count("SELECT few FROM walk") == 2
        text = text.replace("SELECT few FROM walk", "SELECT few FROM rota.lane_few")
    monkeypatch.setattr(claim_lanes, "CLAIM_LANES", Statement("flipped", text))
    jobs = keyed(db, "abcdef", ONE)
    taken = ids(db.claim(session))
    assert (sorted(taken) == jobs) != twice


def test_counts_while_lanes_become_many(db: Database) -> None:
    """No lane is passed twice, and none left out."""
    db.sql(FLIP)
    keyed(db, "abcdef", ONE)
    for _ in range(2):
        assert right(db)
        assert queue(db).counts == {State.AVAILABLE: 6}
        db.sql("SELECT nextval('rota.flip')")
    squeeze(db)
    assert right(db)


def test_many_marks_name_the_plain_lane_only(idle: Database) -> None:
    """Their size does not depend on the keys."""
    keyed(idle, [f"tenant {number}" for number in range(IDLE)], ONE)
    assert squeeze(idle)
    assert idle.one("SELECT cardinality(lanes) FROM rota.tally_mark ORDER BY seq DESC LIMIT 1") <= 3
