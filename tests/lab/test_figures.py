"""What experiments make of their samples: pure functions on made samples."""

from itertools import chain, product

import pytest

from rota.measure.reports.report import Bars, Lines
from rota_lab.databases import Database
from rota_lab.experiments.counting import Count, Counting, growth, sizes
from rota_lab.experiments.exactly_once import (
    DONE,
    FAILED,
    KILLED,
    ExactlyOnce,
    Sample,
    Tally,
    tally,
)
from rota_lab.experiments.ordering import Ordering, Protocol, classes, diffs, runs
from rota_lab.experiments.throughput import PUBLISHED, Run, Throughput, over_time, rate
from rota_lab.protocol import BEGUN, Entry


def entries(*noted: tuple[str, str]) -> list[Entry]:
    """A protocol of these jobs and what is said of them."""
    return [Entry(number, 0.0, job, 1, what) for number, (job, what) in enumerate(noted)]


def test_tally() -> None:
    """Only what was done counts as done; each time more than once counts as once again."""
    noted = entries(
        ("1", BEGUN), ("1", DONE),
        ("2", BEGUN), ("2", FAILED), ("2", BEGUN), ("2", DONE),
        ("3", BEGUN), ("3", KILLED),
        ("4", BEGUN), ("4", BEGUN), ("4", DONE), ("4", DONE), ("4", BEGUN), ("4", DONE),
    )  # fmt: skip
    assert tally(["1", "2", "3", "4", "5"], noted) == Tally(
        again=2, repeated=1, lost=2, failed=1, killed=1
    )
    assert tally([], []) == Tally(0, 0, 0, 0, 0)


def test_exactly_once_result() -> None:
    """Parts are stacked by strategy, and each has a row."""
    samples = [
        Sample(part, 10, Tally(again, again, lost, 0, 0), 1, 3)
        for part, again, lost in [("races", 4, 0), ("failures", 0, 2), ("crashes", 1, 0)]
    ]
    result = ExactlyOnce().result({"bad": samples, "stopped": samples[:1], "none": []}, {})
    again, lost = result.charts
    assert isinstance(again, Bars)
    assert isinstance(lost, Bars)
    assert again.groups == {
        "in races": {"bad": 4, "stopped": 4}, "in failures": {"bad": 0}, "in crashes": {"bad": 1},
    }  # fmt: skip
    assert lost.groups["in failures"] == {"bad": 2}
    rows = result.figures["runs"]
    assert isinstance(rows, dict)
    assert list(rows) == ["bad, races", "bad, failures", "bad, crashes", "stopped, races"]
    assert rows["bad, races"]["done_again"] == 4
    assert rows["bad, failures"]["never_done"] == 2
    assert rows["bad, failures"]["left_in_the_queue"] == 1
    assert rows["bad, failures"]["deadlocks"] == 3


def test_diffs_are_the_articles() -> None:
    """Article 5's own example, and a queue without any reordering."""
    assert diffs([1, 2, 4, 7, 3, 6, 5]) == [0, 0, 1, 3, 2, 0, 2]
    assert diffs(range(1, 50)) == [0] * 49
    # A job that is taken again moves all that come later.
    assert diffs([1, 1, 2, 3]) == [0, 1, 1, 1]


def test_runs() -> None:
    """How many jobs were taken once, twice, three times."""
    assert runs([1, 2, 2, 3, 3, 3, 4]) == {1: 2, 2: 1, 3: 1}


def test_classes() -> None:
    """The limits belong to the lower class, and what is above them all to the last one."""
    found = classes([0, 0, 1, 5, 6, 20, 21, 70, 71, 1000, 1001, 9999])
    assert list(found.values()) == [2, 2, 2, 2, 2, 2]


def test_ordering_result() -> None:
    """The largest Diff is in the label, shares add up to 100, repeated jobs are counted."""
    taken = {"a": [Protocol(4, (1, 2, 2, 3))], "b": [Protocol(3, (1, 2, 3))], "none": []}
    result = Ordering().result(taken, {})
    shares, repeated = result.charts
    assert isinstance(shares, Bars)
    assert isinstance(repeated, Bars)
    assert shares.groups["0"] == {"a (at most 1)": 50, "b (at most 0)": 100}
    assert shares.groups["1 to 5"] == {"a (at most 1)": 50, "b (at most 0)": 0}
    assert repeated.groups == {"2 times": {"a": 1}}
    assert result.figures["runs"] == {
        "a": {
            "entries": 4, "largest_diff": 1, "mean_diff": 0.5, "in_place_percent": 50.0,
            "jobs_taken_again": 1, "most_often": 2, "jobs_never_taken": 1,
        },
        "b": {
            "entries": 3, "largest_diff": 0, "mean_diff": 0.0, "in_place_percent": 100.0,
            "jobs_taken_again": 0, "most_often": 1, "jobs_never_taken": 0,
        },
    }  # fmt: skip
    assert result.series["a: diff"].x == (0, 1)
    assert result.series["a: diff"].y == (2, 2)
    nothing = Ordering().result({"a": [Protocol(4, ())]}, {})
    assert len(nothing.charts) == 1


def test_rate() -> None:
    """From the beginning to the last job, whenever the first one came."""
    assert rate([1.0, 1.5, 2.0, 4.0]) == 1.0
    assert rate([]) == 0.0


def test_over_time() -> None:
    """Intervals of the same length; a rate that halves in the middle is seen to."""
    at, y = over_time([0.01 * n for n in range(1, 401)] + [4 + 0.02 * n for n in range(1, 201)])
    assert len(at) == len(y) == 20
    assert at[0] == pytest.approx(2.5)
    assert at[-1] == pytest.approx(97.5)
    assert y[3] == pytest.approx(100, rel=0.06)
    assert y[-4] == pytest.approx(50, rel=0.06)
    assert sum(y) / len(y) == pytest.approx(600 / 8, rel=0.01)
    assert over_time([0.5]) == ((50.0,), (2.0,))
    assert over_time([]) == ((), ())


def test_throughput_result() -> None:
    """The article's whole table stands beside ours."""
    result = Throughput().result(
        {"a": [Run(Database.SQLITE, 5, (0.5, 1.0, 2.0), 7, 1)], "none": []}, {}
    )
    rows = result.figures["runs"]
    assert isinstance(rows, dict)
    assert rows["a"]["jobs_per_second"] == 1.5
    assert rows["a"]["never_worked"] == 2
    assert rows["a"]["worked_again"] == 7
    published = result.figures["the article's table, jobs per second"]
    assert isinstance(published, dict)
    assert published["DBO-mysql-1"] == {"Forpsi": 210.06, "c4.large": 644.52}
    assert len(published) == 10


def test_the_published_figures_are_quoted() -> None:
    """Each figure of the table stands in the paragraph, too."""
    for figure in chain.from_iterable(PUBLISHED.values()):
        assert f"{figure:g}" in Throughput.said or f"{figure:.2f}" in Throughput.said


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(10_000, [10_000]), (99_999, [10_000]), (100_000, [10_000, 100_000]), (5, [10_000])],
)
def test_sizes(rows: int, expected: list[int]) -> None:
    """Tenfold, from ten thousand on, and never more than asked for."""
    assert sizes(rows) == expected


def test_growth() -> None:
    """The last by the first."""
    assert growth([(10, 2.0), (100, 20.0)]) == 10.0
    assert growth([(10, 2.0)]) is None
    assert growth([]) is None


def test_counting_result() -> None:
    """The median counts; each way of counting is a line."""
    counts = [
        Count(rows, 1.0, {"SELECT COUNT(*)": (9.0, rows / 1e6, rows / 1e6), "counters": (0.001,)})
        for rows in (10_000, 100_000)
    ]
    result = Counting().result({"a": counts}, {})
    assert result.series["a: SELECT COUNT(*)"].x == (10_000, 100_000)
    assert result.series["a: SELECT COUNT(*)"].y == (10, 100)
    assert result.series["a: counters"].y == (1, 1)
    ways = result.figures["time of a count"]
    assert isinstance(ways, dict)
    assert ways["a: SELECT COUNT(*)"]["last_to_first"] == 10
    assert ways["a: counters"]["last_to_first"] == 1
    [chart] = result.charts
    assert isinstance(chart, Lines)
    assert chart.x == "jobs"
    assert chart.spread


def test_counting_says_what_it_takes() -> None:
    """Time and disk of the full form; the quick one needs no warning."""
    said = Counting().beforehand({"rows": 10_000_000})
    assert said is not None
    for word, unit in product(("10", "4.0"), ("minutes", "GB")):
        assert word in said
        assert unit in said
    assert Counting().beforehand({"rows": 100_000}) is None
