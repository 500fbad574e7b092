"""To which lanes the claims of a worker go, and in which order."""

import random
from contextlib import closing
from typing import Any

import pytest

from rota.model.job import JobId, SessionId
from rota.store.opening import open_store
from rota.store.operation import Operation
from rota.store.postgres import claim as claiming
from rota.store.postgres.claim_round import FEW_LANES, FRESH, MISSES, NEXT, Part, Round
from rota.store.protocol import Store
from tests.store.postgres.database import Database, ids

NOW = 100.0
MANY = [Part(lane, 0, ready=True, key_lanes=False) for lane in range(1, 101)]
FEW = MANY[:FEW_LANES]
QUEUES = ["a", "b"]


@pytest.fixture(autouse=True)
def _first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance takes the fortieth of those that there are, or the first."""
    monkeypatch.setattr(random, "choice", lambda parts: parts[39])
    monkeypatch.setattr(random, "randrange", lambda _: 0)


def lanes(parts: object) -> list[int]:
    """The numbers of the lanes."""
    return [part.lane for part in parts]  # type: ignore[attr-defined]


def test_few_lanes() -> None:
    """All of them are looked at again, in their order, until it is time for a probe."""
    around = Round()
    assert lanes(around.begin(QUEUES, FEW, NOW)) == lanes(FEW)
    around.leave(around.visit(FEW))
    assert lanes(around.known(QUEUES, NOW)) == lanes(FEW)
    assert not around.known(["a"], NOW)
    assert not around.known(QUEUES, NOW + FRESH)


def test_many_lanes() -> None:
    """A worker begins anywhere and goes round; smaller priorities come first.

    The next probe begins where it is.
    """
    around = Round()
    urgent = Part(200, -1, ready=True, key_lanes=False)
    idle = Part(300, -2, ready=False, key_lanes=False)
    ready = around.begin(QUEUES, [idle, urgent, *MANY], NOW)
    # The urgent one is the first, so the fortieth is lane 39.
    assert lanes(ready) == [200, *range(39, 101), *range(1, 39)]
    visit = around.visit(ready)
    walked = [next(iter(visit)).lane for _ in range(3)]
    assert walked == [200, 39, 40]
    visit.stay()
    around.leave(visit)
    assert lanes(around.known(QUEUES, NOW)) == [40, *range(41, 101), *range(1, 39)]
    assert lanes(around.begin(QUEUES, MANY, NOW))[0] == 40


def test_where_others_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on somewhere else among those of the same priority."""
    around = Round()
    later = Part(200, 1, ready=True, key_lanes=False)
    ready = around.begin(QUEUES, [*MANY, later], NOW)
    monkeypatch.setattr(random, "randrange", lambda count: count // 2)
    visit = around.visit(ready)
    walk = iter(visit)
    assert next(walk).lane == 40
    visit.miss()
    assert next(walk).lane == 90
    assert lanes(visit.left)[-1] == 200
    assert len(visit.left) == len(ready) - 2


def test_what_others_have_emptied() -> None:
    """After some such lanes the next ones are doubted; the empty ones of those are not visited."""
    around = Round()
    keyed = Part(1, 0, ready=True, key_lanes=True)
    visit = around.visit([*MANY[:3], keyed, *around.begin(QUEUES, MANY, NOW)[:70]])
    walk = iter(visit)
    for _ in range(MISSES):
        assert visit.doubted() == []
        next(walk)
        visit.miss()
    doubted = visit.doubted()
    assert doubted == [3, *range(40, 101), 1]
    assert len([*doubted, keyed]) == NEXT
    visit.keep(doubted, {41, 90})
    assert lanes(visit.left) == [keyed.lane, 41, 90, 2, *range(4, 10)]
    assert next(walk) is keyed
    assert visit.doubted() == []


def test_few_lanes_are_not_doubted() -> None:
    """To look at them again costs no more than to ask."""
    around = Round()
    visit = around.visit(around.begin(QUEUES, FEW, NOW))
    for _ in visit:
        visit.miss()
    assert visit.doubted() == []


def test_a_queue_without_room() -> None:
    """Its lane is passed by, which is no miss; the next claim looks there again."""
    around = Round()
    around.leave(around.visit(around.begin(QUEUES, MANY, NOW)))
    visit = around.visit(around.known(QUEUES, NOW))
    walk = iter(visit)
    passed = []
    for _ in range(MISSES):
        passed.append(next(walk))
        visit.pass_by()
    assert visit.doubted() == []
    visit.left.clear()
    around.leave(visit)
    assert list(around.known(QUEUES, NOW)) == passed


def test_a_full_claim_leaves_the_rest(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one goes on there, without a probe; a probe finds what came meanwhile."""
    monkeypatch.setattr(random, "choice", lambda parts: parts[0])
    probes: list[object] = []
    probe = claiming.probe

    def noting(*asked: Any) -> Operation[list[Part]]:
        probes.append(asked)
        return probe(*asked)

    monkeypatch.setattr(claiming, "probe", noting)
    jobs = [job for priority in range(10) for job in db.enqueue(2, priority=priority)]
    session = db.session()

    def claim(*, woken: bool) -> list[JobId]:
        return ids(db.own.run(db.store.claim(session, ("default",), 3, woken=woken)))

    assert claim(woken=False) == jobs[:3]
    assert claim(woken=True) == jobs[3:6]
    assert len(probes) == 1
    first = db.enqueue(3, priority=-1)
    assert claim(woken=False) == first


def test_a_claim_asks_what_others_have_left(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not try each lane that another worker has emptied since the probe."""
    taken: list[int] = []
    take = claiming.take

    def noting(session: SessionId, lane: int, *asked: Any, **more: Any) -> Operation[Any]:
        taken.append(lane)
        return take(session, lane, *asked, **more)

    jobs = [job for priority in range(90) for job in db.enqueue(1, priority=priority)]
    session = db.session()

    def claim(store: Store, limit: int, *, woken: bool = False) -> list[JobId]:
        return ids(db.own.run(store.claim(session, ("default",), limit, woken=woken)))

    assert claim(db.store, 1) == jobs[:1]
    with closing(open_store(db.url)) as other:
        assert claim(other, 79) == jobs[1:80]
    monkeypatch.setattr(claiming, "take", noting)
    assert claim(db.store, 5, woken=True) == jobs[80:85]
    # Each of the two questions comes after so many.
    assert len(taken) == 2 * MISSES + 5


def test_a_late_job_is_left(db: Database) -> None:
    """Of a lane that was passed while a transaction ran, its jobs are left when it commits."""
    late = db.bare()
    delayed = db.enqueue(1, conn=late)
    db.enqueue(1)
    assert db.claim(db.session(), 2)
    [(lane,)] = db.admin.execute("SELECT id FROM rota.lane").fetchall()
    assert db.own.run(claiming.lanes_left([lane, lane + 1])) == set()
    late.commit()
    assert db.own.run(claiming.lanes_left([lane, lane + 1])) == {lane}
    assert ids(db.claim(db.session())) == delayed
