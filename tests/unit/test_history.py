"""What is written down of a minute: differences of totals."""

from datetime import UTC, datetime

import pytest

from rota.errors import ConfigError
from rota.model.history import (
    ALL,
    KEPT,
    MOST,
    Counted,
    HistoryPoint,
    Totals,
    first_minute,
    noted,
    step_of,
    whole_minutes,
)

NOW = datetime(2026, 11, 23, 20, 41, 30, tzinfo=UTC)


def gained(before: dict[str, Totals] | None, *counted: Counted) -> dict[str, Totals]:
    """What came to each queue."""
    return {row.queue: row.gained for row in noted(before, counted)}


def test_differences() -> None:
    """What the totals have grown by; of a queue that was not there, all of it."""
    found = gained(
        {"mail": Totals(10, 8, 7, 1)},
        Counted("mail", Totals(15, 12, 10, 2)),
        Counted("new", Totals(2, 1)),
    )
    assert found == {ALL: Totals(7, 5, 3, 1), "mail": Totals(5, 4, 3, 1), "new": Totals(2, 1)}


def test_without_a_look_before() -> None:
    """Nothing is known but what there is, and each queue is noted for the next look."""
    rows = noted(
        None, [Counted("mail", Totals(10, 8, 7, 1), 2, 5.0), Counted("idle", Totals(3, 3, 3))]
    )
    assert [(row.queue, row.gained, row.available) for row in rows] == [
        (ALL, Totals(), 2),
        ("idle", Totals(), 0),
        ("mail", Totals(), 2),
    ]
    assert rows[0].oldest == 5.0


@pytest.mark.parametrize("whole", [False, True])
def test_idle_queues(*, whole: bool) -> None:
    """They are left out, unless all are asked for; the sums are there in any case."""
    same = Totals(3, 3, 3)
    rows = noted({"idle": same}, [Counted("idle", same)], whole=whole)
    assert [row.queue for row in rows] == [ALL, "idle"][: 2 if whole else 1]
    assert rows[0].gained == Totals()


def test_a_total_that_begins_anew() -> None:
    """It has come from nothing; of a sum of several totals nothing is known."""
    before = {"one": Totals(100, 100, 100), "two": Totals(100, 100, 100)}
    found = gained(
        before,
        Counted("one", Totals(4, 3, 2)),
        Counted("two", Totals(4, 3, 2), lanes=2),
    )
    assert found["one"] == Totals(4, 3, 2)
    assert found["two"] == Totals()
    # What comes next is counted from there.
    assert noted({"two": Totals(4, 3, 2)}, [Counted("two", Totals(9, 3, 2), lanes=2)])[
        1
    ].gained == Totals(5)


def test_numbers_that_are_too_large() -> None:
    """They stay what a column can hold."""
    huge = Counted("mail", Totals(3 * MOST))
    rows = noted({}, [huge, huge._replace(queue="other")])
    assert {row.gained.appended for row in rows} == {MOST}


def test_rates() -> None:
    """By the time that the numbers took to come about."""
    point = HistoryPoint(NOW, 600, 50, 0, 0, 0, 0, None)
    assert point.per_minute(point.appended) == 5.0
    assert HistoryPoint(NOW, 0, 0, 0, 0, 0, 0, None).per_minute(0) is None


def test_where_it_begins() -> None:
    """At a whole minute, and never before those that are kept."""
    minute = int(NOW.timestamp()) // 60
    assert first_minute(NOW, 60.0) == minute - 1
    assert first_minute(NOW, 1e9) == minute - KEPT
    assert step_of(NOW, 5) == datetime(2026, 11, 23, 20, 40, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [0.0, 30.0, 90.0, KEPT * 60.0 + 60.0])
def test_steps_that_cannot_be(seconds: float) -> None:
    """Only whole minutes, up to a week."""
    with pytest.raises(ConfigError, match="must be whole minutes, up to seven days"):
        whole_minutes(seconds)
    assert whole_minutes(300.0) == 5
