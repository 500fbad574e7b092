"""Rates from running totals."""

import pytest

from rota.top.history import SPAN, History, Rates
from tests.top.made import queue


def looked(*looks: tuple[float, int, int]) -> History:
    """A history of looks: moments with what was appended and claimed."""
    history = History()
    for moment, appended, claimed in looks:
        history.add(moment, [queue("mail", appended, claimed)])
    return history


def test_one_look_is_no_rate() -> None:
    """A rate needs two looks."""
    history = looked((10.0, 500, 400))
    assert history.rates("mail") is None
    assert history.course("mail", 3) == [None, None, None]
    assert History().rates("mail") is None


def test_rates_are_those_of_the_last_two_looks() -> None:
    """Rates are differences by the time between two looks."""
    history = looked((0.0, 0, 0), (1.0, 1000, 900), (3.0, 1010, 904))
    assert history.rates("mail") == Rates(5.0, 2.0)
    assert history.rates("nobody") is None


def test_a_new_queue_had_nothing_before() -> None:
    """A new queue's jobs came since the look before."""
    history = looked((0.0, 0, 0))
    history.add(2.0, [queue("mail"), queue("new", 10, 4)])
    assert history.rates("new") == Rates(5.0, 2.0)


def test_two_looks_at_one_moment() -> None:
    """No time, no rate."""
    assert looked((1.0, 0, 0), (1.0, 5, 5)).rates("mail") is None


@pytest.mark.parametrize("after", [(2.0, 90, 50), (2.0, 100, 40)])
def test_another_database(after: tuple[float, int, int]) -> None:
    """Totals that shrink are another database's: no negative rates, and the history is forgotten."""
    history = looked((0.0, 0, 0), (1.0, 100, 50), after)
    assert history.rates("mail") is None
    assert history.course("mail", 2) == [None, None]


def test_a_queue_that_is_gone() -> None:
    """Nor do queues vanish from a database."""
    history = looked((0.0, 0, 0), (1.0, 1, 1))
    history.add(2.0, [])
    assert history.rates("mail") is None


def test_the_course() -> None:
    """The last minute in equal parts, with what was claimed between two looks spread evenly."""
    half = SPAN / 2
    history = looked((0.0, 0, 0), (half, 0, 30), (2 * half, 0, 90))
    assert history.course("mail", 4) == [1.0, 1.0, 2.0, 2.0]
    history = looked((half, 0, 30), (2 * half, 0, 90))
    assert history.course("mail", 4) == [None, None, 2.0, 2.0]
    assert history.course("nobody", 2) == [None, 0.0]


def test_it_forgets() -> None:
    """Looks before the span are dropped, but for the last."""
    history = looked(*((float(second), second, second) for second in range(1000)))
    assert len(history._looks) == SPAN + 1
    assert history.course("mail", 12) == [pytest.approx(1.0)] * 12
    rare = looked((0.0, 0, 0), (500.0, 0, 500), (1000.0, 0, 500))
    assert rare.rates("mail") == Rates(0.0, 0.0)
    assert rare.course("mail", 2) == [0.0, 0.0]
