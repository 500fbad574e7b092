"""Thousands of queues, most of them idle: what goes round the lanes again and again passes them by."""

from collections.abc import Callable

import pytest

from rota.store.operation import Query, Single, Statement
from rota.store.postgres import counters, rings
from rota.store.postgres.counters import SQUEEZE
from rota.store.postgres.enqueue import ENQUEUE_HERE
from rota.store.postgres.health import LANES
from rota.store.postgres.sessions import SESSION_RENEW
from tests.store.keying import limited
from tests.store.postgres.counting import right, squeeze, tidy
from tests.store.postgres.database import Database, buffers, ids

MANY = 400


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rings turn whenever they can."""
    for size in ("LOG_SIZE", "CURSOR_SIZE", "CURSOR_SIZE_OF_LANE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, size, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


@pytest.fixture
def tenants(db: Database) -> list[str]:
    """A queue for each of many tenants, which has had two jobs; and numbers of many more lanes."""
    names = [f"tenant-{number}" for number in range(MANY)]
    db.sql("INSERT INTO rota.queue (name) SELECT unnest(%s::text[])", names)
    db.sql("INSERT INTO rota.lane (queue, priority) SELECT unnest(%s::text[]), 0", names)
    db.sql("INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)"
           " SELECT 0, id, 0, '3', 1, 2, '{}', '{}' FROM rota.lane")  # fmt: skip
    db.sql(
        "INSERT INTO rota.tally (slot, lane, state, jobs) SELECT 0, id, 'appended', 2 FROM rota.lane"
    )
    db.sql("SELECT setval('rota.lane_id_seq', 5000)")
    assert squeeze(db)
    return names


def totals(db: Database) -> int:
    """How many totals the newest mark has."""
    return int(db.one("SELECT cardinality(lanes) FROM rota.tally_mark ORDER BY seq DESC LIMIT 1"))


REPEATED: dict[str, Callable[[Database], Query]] = {
    "sign of life": lambda db: SESSION_RENEW(session=db.session()),
    "squeeze": lambda _: SQUEEZE(age=0.0),
    "lanes": lambda _: LANES(),
}
"""What workers and `rota top` ask every second or so."""


@pytest.mark.parametrize("what", REPEATED)
def test_idle_queues_are_not_walked(db: Database, tenants: list[str], what: str) -> None:
    """Signs of life, squeezes and looks of `rota top` read what is in use, and no more."""
    tidy(db)
    squeeze(db)
    db.enqueue(1, queue=tenants[7])
    query = REPEATED[what](db)
    assert buffers(db, query) < MANY


def test_the_totals_of_idle_queues_leave_the_marks(db: Database, tenants: list[str]) -> None:
    """When the cursors turn; what is told of the queues stays right, and goes on from there."""
    assert totals(db) == MANY
    waiting = db.enqueue(1, queue=tenants[3])
    tidy(db)
    assert right(db)
    squeeze(db)
    assert totals(db) == 1
    assert right(db)
    session = db.session()
    assert ids(db.claim(session, 10, tenants)) == waiting
    assert right(db)
    db.enqueue(1, queue=tenants[8])
    assert right(db)
    squeeze(db)
    assert right(db)


def test_keys_of_an_idle_queue_leave_the_marks(db: Database, tenants: list[str]) -> None:
    """What they have handed out counts in the tally of their plain lane, until nothing is left."""
    limited(db.store, db.own, "ab", queue=tenants[3])
    session = db.session()
    db.settle(session, db.claim(session, 10, tenants))
    tidy(db, 6)
    assert right(db)
    squeeze(db)
    assert right(db)
    assert totals(db) == 0


@pytest.mark.parametrize("awake", [False, True])
def test_a_lane_in_use_keeps_its_totals(
    db: Database, tenants: list[str], monkeypatch: pytest.MonkeyPatch, *, awake: bool
) -> None:
    """So `rota top` has rates of the queues that have work, whatever turns."""
    if not awake:
        text = rings.CURSOR_REPEAT.text
        hasty = text.replace(
            "NOT EXISTS (SELECT FROM rota.log AS job WHERE job.lane = newest.lane) AS idle",
            "true AS idle",
        )
        assert hasty != text
        monkeypatch.setattr(rings, "CURSOR_REPEAT", Statement("hasty", hasty))
    session = db.session()
    db.enqueue(3, queue=tenants[3])
    db.claim(session, 1, tenants)
    tidy(db)
    [queue] = [one for one in db.own.run(db.store.queues()) if one.name == tenants[3]]
    assert ((queue.appended, queue.claimed) == (5, 3)) == awake
    assert right(db)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_late_commit_wakes_its_lane(db: Database, tenants: list[str], *, prepared: bool) -> None:
    """However often the cursors turned meanwhile: the job is handed out once, and counted."""
    session = db.session()
    turn = "SELECT setval('rota.log_turn', last_value + 1) FROM rota.log_turn"
    late = db.bare()
    hidden = db.enqueue(2, conn=late, queue=tenants[7])
    name = f"late in {db.one('SELECT current_database()')}"
    if prepared:
        late.execute(f"PREPARE TRANSACTION '{name}'".encode())
    # Its cursor passes the open transaction, and knows of a hole.
    db.sql(turn)
    passing = db.enqueue(1, queue=tenants[7])
    jobs = db.claim(session, 10, tenants)
    assert ids(jobs) == passing
    db.settle(session, jobs)
    tidy(db, 8)
    assert right(db)
    assert db.claim(session, 10, tenants) == []
    assert db.one("SELECT count(*) FROM rota.log") == 0
    assert db.one("SELECT taken FROM rota.cursor_newest WHERE lane = (SELECT id FROM rota.lane"
                  " WHERE queue = %s)", tenants[7]) == 0  # fmt: skip
    if prepared:
        db.sql(f"COMMIT PREPARED '{name}'")
    else:
        late.commit()
    assert right(db)
    assert db.own.run(db.store.look(tenants)).available
    jobs = db.claim(session, 10, tenants)
    assert ids(jobs) == hidden
    assert right(db)
    db.settle(session, jobs)
    assert db.claim(session, 10, tenants) == []
    assert right(db)


def test_a_producer_that_remembers_its_lane(db: Database, tenants: list[str]) -> None:
    """It goes on with the number that it was told, after turns of all rings."""
    session = db.session()
    db.enqueue(1, queue=tenants[9])
    db.settle(session, db.claim(session, 10, tenants))
    tidy(db, 8)
    [lane] = [row[0] for row in db.sql("SELECT id FROM rota.lane WHERE queue = %s", tenants[9])]
    told = {
        "max_attempts": 5, "timeout": None, "task": "shop.send", "headers": None, "args": "{}", "wake": None,
    }  # fmt: skip
    segment = db.one("SELECT last_value % 4 FROM rota.log_turn")
    [(job, _)] = db.own.run(Single("late", ENQUEUE_HERE[segment](lane=lane, **told), list))
    assert ids(db.claim(session, 10, tenants)) == [job]
    assert right(db)


def test_many_cursors_rest(
    db: Database, tenants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that has hardly more than an entry for each lane is not left again at once."""
    assert tenants
    before = "SELECT last_value FROM rota.cursor_turn"
    monkeypatch.setattr(rings, "CURSOR_SIZE_OF_LANE", 400)
    turn = db.one(before)
    tidy(db, 2)
    assert db.one(before) == turn
    monkeypatch.setattr(rings, "CURSOR_SIZE_OF_LANE", 40)
    tidy(db)
    assert db.one(before) == turn + 1
