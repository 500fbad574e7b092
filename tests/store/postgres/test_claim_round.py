"""To which lanes the claims of a worker go, and in which order."""

import random
from typing import Any

import pytest

from rota.model.job import JobId
from rota.store.operation import Operation
from rota.store.postgres import claim as claiming
from rota.store.postgres.claim_round import FEW_LANES, FRESH, MISSES, Part, Round, Visit
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


def misses(visit: Visit, give: int = 0) -> int:
    """How many lanes are visited if all are empty but for so many at the beginning."""
    visited = 0
    for visited, _ in enumerate(visit, 1):
        if visited > give:
            visit.miss()
        else:
            visit.gave()
    return visited


def test_few_lanes() -> None:
    """All of them are looked at again, in their order, until it is time for a probe."""
    around = Round()
    assert lanes(around.begin(QUEUES, FEW, NOW)) == lanes(FEW)
    around.leave(around.visit(FEW))
    assert lanes(around.known(QUEUES, NOW)) == lanes(FEW)
    assert not around.known(["a"], NOW)
    assert not around.known(QUEUES, NOW + FRESH)


def test_many_lanes() -> None:
    """A worker begins with any, and goes round; smaller priorities come first; the next probe begins where it is."""
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


@pytest.mark.parametrize("known", [False, True])
def test_what_others_have_emptied(*, known: bool) -> None:
    """After some such lanes it is time for a probe; right after one, only where the claim has got something."""
    around = Round()
    ready = around.begin(QUEUES, MANY, NOW)
    if known:
        around.leave(around.visit(ready))
        ready = around.known(QUEUES, NOW)
    visit = around.visit(ready)
    assert misses(visit) == (MISSES if known else len(MANY))
    if not known:
        assert misses(around.visit(ready), give=1) == 1 + MISSES


def test_a_queue_without_room() -> None:
    """Its lane is passed by, which is neither a find nor a miss; the next claim looks there again."""
    around = Round()
    around.leave(around.visit(around.begin(QUEUES, MANY, NOW)))
    visit = around.visit(around.known(QUEUES, NOW))
    walk = iter(visit)
    for _ in range(MISSES - 1):
        next(walk)
        visit.miss()
    passed = next(walk)
    visit.pass_by()
    next(walk)
    visit.miss()
    assert next(walk, None) is None
    around.leave(visit)
    assert list(around.known(QUEUES, NOW)) == [passed]


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
