"""Limits, rates, fair shares and pauses beside an old snapshot: as exact as without it, and as cheap.

What a claim costs is counted in buffers, not in seconds; see `test_horizon.py`.
"""

from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from rota import Limit
from rota.model.job import JobId, JobSpec, Keys, Order, SessionId
from rota.store.postgres import claim, claim_lanes, look, rings
from tests.store.keying import fair, keys_of, limited
from tests.store.postgres.database import Database, Raw, buffers, ids

TENANTS = 10
ROUNDS = 12
SHORT = 2
EACH = 6

Enqueueing = Callable[[Database, list[str]], list[JobId]]


def with_places(db: Database, keys: list[str]) -> list[JobId]:
    """At most two of a key run at once."""
    return limited(db.store, db.own, keys)


def with_a_rate(db: Database, keys: list[str]) -> list[JobId]:
    """A rate that is never reached, in a window that holds all of the test."""
    return limited(db.store, db.own, keys, Limit("{key}", per_second=10_000))


def with_shares(db: Database, keys: list[str]) -> list[JobId]:
    """Fair shares."""
    return fair(db.store, db.own, keys)


@pytest.fixture
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round of housekeeping turns the rings."""
    for ring in ("LOG", "CURSOR", "LEASE", "LIMIT"):
        monkeypatch.setattr(rings, f"{ring}_SIZE", 0)


def claiming(db: Database, session: SessionId) -> tuple[int, int]:
    """The buffers of a claim of key lanes, and of an idle worker's look at them."""
    lane = db.one("SELECT id FROM rota.lane WHERE NOT of_key")
    taking = claim_lanes.CLAIM_LANES(
        lane=lane, session=session, size=TENANTS, after=0, share=1, most=TENANTS + 1, tasks=None
    )
    lock = claim_lanes.KEYED_LOCK(lane=lane, session=session)
    looking = look.AVAILABLE(queues=["default"], tasks=None)
    return buffers(db, taking, lock=lock), buffers(db, looking)


@pytest.mark.parametrize("enqueueing", [with_places, with_shares])
def test_claims_stay_flat(db: Database, held: Raw, enqueueing: Enqueueing) -> None:
    """The last claim reads as much as the first one, though nothing may be removed for good."""
    del held
    keys = [f"tenant {number}" for number in range(TENANTS)]
    session = db.session()
    costs: list[tuple[int, int]] = []
    for _ in range(ROUNDS):
        enqueueing(db, keys * 4)
        costs.append(claiming(db, session))
        while jobs := db.claim(session, 2 * TENANTS):
            assert db.settle(session, jobs) == []
        db.own.run(db.store.tidy())
    for first, *last in zip(costs[1], *costs[-3:], strict=True):
        # The way down an index may be longer, once or twice for each lane. What grows goes on
        # growing.
        assert min(last) <= first + 3 * TENANTS, str(costs)


def test_starts_of_long_ago_are_not_read(db: Database, held: Raw) -> None:
    """A claim under a rate reads the starts in its window, however many there were before."""
    del held
    keys = [f"tenant {number}" for number in range(TENANTS)]
    session = db.session()
    with_a_rate(db, keys)
    before = claiming(db, session)
    db.sql(
        "INSERT INTO rota.limit_start (slot, limit_id, at, jobs)"
        " SELECT (SELECT last_value %% 2 FROM rota.limit_turn), limit_key.id,"
        "        now() - make_interval(secs => 10 + number * 0.01), %s"
        " FROM rota.limit_key, generate_series(1, 2000) AS number",
        1,
    )
    after = claiming(db, session)
    for first, last in zip(before, after, strict=True):
        # Each key's way down the index may be longer.
        assert last <= first + 4 * TENANTS, (before, after)


def history(db: Database, name: str) -> list[Counter[str]]:
    """What each claim gives while places are taken and freed; never more of a key than two hold."""
    session = db.session()
    given: list[Counter[str]] = []
    for _ in range(SHORT):
        with_places(db, [f"{name} {number}" for number in range(5)] * EACH)
        held = db.claim(session)
        given.append(Counter(keys_of(held)))
        while held:
            assert db.claim(session) == []
            ended, held = held[:3], held[3:]
            assert db.settle(session, ended) == []
            more = db.claim(session)
            given.append(Counter(keys_of(more)))
            held += more
            assert max(Counter(keys_of(held)).values(), default=0) <= 2
            db.own.run(db.store.tidy())
    return [Counter({key.removeprefix(name): n for key, n in counted.items()}) for counted in given]


@pytest.mark.usefixtures("small_rings")
def test_places_are_the_same(db: Database) -> None:
    """Claim by claim the same is handed out with an old snapshot as without, while rings turn."""
    without = history(db, "before")
    old = db.bare()
    old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    old.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lease")
    assert history(db, "after") == without
    assert sum(without, Counter()) == {f" {number}": EACH * SHORT for number in range(5)}
    old.rollback()


@pytest.mark.usefixtures("small_rings")
def test_rates_are_exact(db: Database, held: Raw) -> None:
    """As many start in the window as may, whatever ends in between and however the rings turn."""
    del held
    session = db.session()
    started: Counter[str] = Counter()
    for _ in range(ROUNDS):
        limited(db.store, db.own, "abc" * 2, Limit("{key}", per_hour=15))
        jobs = db.claim(session, 4)
        started.update(keys_of(jobs))
        db.settle(session, jobs[:2])
        db.own.run(db.store.tidy())
        db.settle(session, jobs[2:])
    started.update(keys_of(db.claim_all(session)))
    assert started == dict.fromkeys("abc", 15)
    assert db.claim(session) == []


def test_a_producer_whose_snapshot_is_older_than_its_lanes(db: Database, held: Raw) -> None:
    """A transaction that sees neither limit nor lane enqueues there all the same, more than once."""
    keys = ["a", "b"]
    with_places(db, keys)
    spec = JobSpec("t", limit=Limit("{key}", running=2))
    enqueued = [
        db.inside(held, db.store.enqueue(Order(spec, ["{}"] * 2, Keys(limit=keys)))).placed
        for _ in range(3)
    ]
    late = [answer.job for placed in enqueued for answer in placed]
    session = db.session()
    early = db.claim(session)
    assert len(early) == 2
    held.commit()
    order: list[JobId] = []
    while jobs := db.claim(session):
        order += ids(jobs)
        db.settle(session, early + jobs)
        early = []
    assert sorted(order) == sorted(late)
    assert order[:2] == late[:2]
    assert len(set(order)) == 6
    held.execute("SELECT 1")


def test_pauses(db: Database, held: Raw) -> None:
    """A pause holds for the very next claim, and a claim costs as much as before many pauses."""
    del held
    session = db.session()
    jobs = db.enqueue(60) + with_places(db, ["a", "b"] * 30)
    lane = db.one("SELECT id FROM rota.lane WHERE NOT of_key")

    def costs() -> list[int]:
        looking = look.AVAILABLE(queues=["default"], tasks=None)
        locks = claim.CLAIM_LOCK, claim_lanes.KEYED_LOCK
        return [buffers(db, lock(lane=lane, session=session)) for lock in locks] + [
            buffers(db, looking)
        ]

    before = costs()
    started: list[JobId] = []
    for number in range(50):
        # These find out which lanes there are; one that was woken then goes there without a look.
        # It begins with the plain lane or the others, as they take turns.
        held_now = [job for _ in range(1 + number % 2) for job in db.claim(session, 1)]
        assert db.own.run(db.store.pause("default"))
        assert db.own.run(db.store.claim(session, ["default"], 10, woken=True)) == []
        assert db.own.run(db.store.resume("default"))
        assert db.settle(session, held_now) == []
        started += ids(held_now)
    for first, last in zip(before, costs(), strict=True):
        assert last <= 1.5 * first + 20, before
    while more := db.claim(session, 100):
        assert db.settle(session, more) == []
        started += ids(more)
    assert sorted(started) == sorted(jobs)
