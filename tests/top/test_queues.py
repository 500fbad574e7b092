"""Which queues are shown, and in which order."""

import pytest

from rota.model.states import State
from rota.top.history import History, Rates
from rota.top.queues import POINTS, SORTS, arranged, next_sort, queue_rows, sums
from tests.top.made import lane, queue, rows, snapshot, worker


def names(sort: str, wanted: str = "") -> list[str]:
    """The order of some queues."""
    history = History()
    history.add(0.0, [queue("Mail"), queue("paint"), queue("zoo")])
    looked = [
        queue("Mail", 5, 9, available=1, running=2, discarded=3, retryable=1),
        queue("paint", 7, 1, available=9, running=0, discarded=0, paused=True),
        queue("zoo", 9, 3, available=1, running=2, discarded=7),
    ]
    history.add(1.0, looked)
    shown = queue_rows(snapshot(*looked, lanes=(lane("zoo", 5.0), lane("paint", 50.0))), history)
    return [row.name for row in arranged(shown, sort, wanted)]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", "Mail paint zoo"),
        ("available", "paint Mail zoo"),
        ("running", "Mail zoo paint"),
        ("retryable", "Mail paint zoo"),
        ("discarded", "zoo Mail paint"),
        ("in/s", "zoo paint Mail"),
        ("out/s", "Mail zoo paint"),
        ("oldest", "paint zoo Mail"),
    ],
)
def test_sorts(sort: str, order: str) -> None:
    """Figures from the largest; where equal, by name."""
    assert names(sort) == order.split()


def test_every_sort_comes_round() -> None:
    """The key goes through all of them and begins again."""
    sort, seen = "name", []
    for _ in SORTS:
        seen.append(sort)
        sort = next_sort(sort)
    assert sort == "name"
    assert seen == list(SORTS)


def test_filter() -> None:
    """A part of the name, whatever its case; characters mean themselves."""
    assert names("name", "AI") == ["Mail", "paint"]
    assert names("name", ".") == []


def test_jobs_that_no_worker_takes() -> None:
    """A queue in which jobs wait is served by a living worker that names it, or by no worker."""
    looked = snapshot(
        *(queue(name) for name in ("mail-a", "video", "fax", "empty")),
        queue("paused", paused=True),
        lanes=tuple(lane(name, 5.0) for name in ("mail-a", "video", "fax", "paused")),
        workers=(worker(queues=("mail-*",)), worker(queues=("video",), silent=16.0, timeout=15.0)),
    )
    shown = queue_rows(looked, History())
    assert {row.name: (row.served, row.waits_in_vain) for row in shown} == {
        "mail-a": (True, False), "video": (False, True), "fax": (False, True),
        "empty": (False, False), "paused": (False, False),
    }  # fmt: skip
    assert sums(shown).unserved == 2


def test_the_oldest_of_several_priorities() -> None:
    """A queue's oldest is the longest wait of its lanes."""
    [row] = rows(queue(), lanes=(lane("mail", 3.0), lane("mail", 9.0, 5), lane("mail", None, 7)))
    assert row.oldest == 9.0
    assert len(row.course) == POINTS
    assert rows(queue())[0].oldest is None


def test_sums() -> None:
    """All queues together."""
    total = sums(rows(queue("a", available=1), queue("b", available=2, paused=True)))
    assert (total.queues, total.paused, total.counts[State.AVAILABLE]) == (2, 1, 3)
    assert total.rates is None
    history = History()
    for moment in (0.0, 1.0):
        looked = [queue("a", int(moment), 0), queue("b", 2 * int(moment), 3 * int(moment))]
        history.add(moment, looked)
    assert sums(queue_rows(snapshot(*looked), history)).rates == Rates(3.0, 3.0)
    assert sums([]).rates is None
