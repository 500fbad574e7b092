"""The other workers of a queue: when each looks, and which of them stand by."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from rota.model.job import Renewal, SessionId
from rota.worker.peers import SELDOM, Peers

POLL = 1.0

TIMEOUT = 15.0


def hear(peers: Peers, session: SessionId, serving: Mapping[str, Sequence[SessionId]]) -> bool:
    """Let it hear which sessions serve the queues."""
    return peers.hear(session, Renewal(alive=True, serving=serving))


def crew(count: int) -> list[Peers]:
    """Workers of the queue `default` that know of each other."""
    sessions = [SessionId(10 + number) for number in range(count)]
    workers = [Peers(["default"], TIMEOUT) for _ in sessions]
    for worker, session in zip(workers, sessions, strict=True):
        hear(worker, session, {"default": sessions})
    return workers


def looks(worker: Peers, start: float, seconds: float) -> list[float]:
    """When it looks, by the server's clock."""
    found = [start]
    while found[-1] < start + seconds:
        found.append(found[-1] + worker.until_turn(POLL, found[-1]))
    return found


@pytest.mark.parametrize("count", [*range(1, 20), 50, 200])
def test_together_they_look_often_enough(count: int) -> None:
    """Some worker looks in each `poll`, even if one of them does not; and each looks now and then."""
    begin, seconds = 1_800_000_000.0, 60.0 * POLL
    all_looks = [
        looks(worker, begin + 0.37 * number % SELDOM, seconds)
        for number, worker in enumerate(crew(count))
    ]
    settled = begin + 3 * SELDOM * POLL
    for absent in [None, *range(min(count, 3))]:
        if count == 1 and absent is not None:
            continue
        moments = sorted(
            moment
            for number, found in enumerate(all_looks)
            if number != absent
            for moment in found
            if settled < moment < begin + seconds
        )
        assert max(after - before for before, after in pairwise(moments)) <= POLL + 1e-3
    for found in all_looks:
        assert max(after - before for before, after in pairwise(found)) <= 1.06 * SELDOM * POLL


@pytest.mark.parametrize(
    ("count", "most"), [(1, 1.1), (2, 2.1), (4, 2.1), (16, 2.1), (32, 2.1), (50, 3.3)]
)
def test_together_they_do_not_look_too_often(count: int, most: float) -> None:
    """However many they are; in one `poll`, once each has had its turn."""
    begin, seconds = 1_800_000_000.0, 100.0 * POLL
    total = sum(
        len(
            [
                moment
                for moment in looks(worker, begin, seconds)
                if begin + 20 * POLL < moment < begin + seconds
            ]
        )
        for worker in crew(count)
    )
    assert total / 80 <= most


@pytest.mark.parametrize("count", [4, 8, 16, 32, 50, 100])
def test_half_of_them_have_gone(count: int) -> None:
    """Those of one machine, which came one after the other; the others do not leave long gaps."""
    begin = 1_800_000_000.0
    crew_looks = [looks(worker, begin, 100.0) for worker in crew(count)]
    for left in (crew_looks[: count // 2], crew_looks[count // 2 :]):
        moments = sorted(moment for found in left for moment in found if moment > begin + 40)
        assert max(after - before for before, after in pairwise(moments)) <= 1.5 * POLL + 1e-3


def test_a_turn_that_has_just_been() -> None:
    """A look a little after its time is the turn, and so is one a little before."""
    [worker] = crew(1)
    assert worker.until_turn(POLL, 1000.01) == pytest.approx(0.99)
    assert worker.until_turn(POLL, 999.98) == pytest.approx(1.02)


def test_who_stands_by() -> None:
    """Two of each queue, the same for all, also where a pattern names it."""
    assert [worker.stands_by("default") for worker in crew(4)] == [True, True, False, False]
    assert not any(worker.stands_by("other") for worker in crew(4))
    sessions = [SessionId(1), SessionId(2), SessionId(3)]
    third = Peers(["mail-*"], TIMEOUT)
    hear(third, sessions[2], {"mail-*": sessions})
    first = Peers(["mail-*"], TIMEOUT)
    hear(first, sessions[0], {"mail-*": sessions})
    assert (first.stands_by("mail-a"), third.stands_by("mail-a")) == (True, False)


def test_what_it_hears() -> None:
    """It says when others have gone."""
    sessions = [SessionId(1), SessionId(2)]
    peers = Peers(["a", "b"], TIMEOUT)
    assert not hear(peers, sessions[0], {"a": sessions, "b": sessions[:1]})
    assert not hear(peers, sessions[0], {"a": sessions, "b": sessions})
    assert hear(peers, sessions[0], {"a": sessions[:1], "b": sessions[:1]})
