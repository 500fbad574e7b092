"""The figures that are made of measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.measure.bench.figures import (
    Curve,
    Step,
    distribution,
    ends_of_parts,
    growth,
    milliseconds,
    percentiles,
    ratio,
    tenths,
)


def test_percentiles_are_values_of_the_sample() -> None:
    """The median and the tail, in milliseconds, whatever the order."""
    assert percentiles([n / 1000 for n in reversed(range(100))]) == {
        "p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "max_ms": 99.0,
    }  # fmt: skip


def test_nothing_has_no_percentiles() -> None:
    """An empty sample is no error, and no zero either."""
    assert set(percentiles([]).values()) == {None}
    assert milliseconds([], 0.5) is None


def test_a_percentile_of_one_value() -> None:
    """One value is all percentiles."""
    assert milliseconds([0.25], 0.95) == 250.0


@pytest.mark.parametrize(
    ("value", "base", "expected"), [(1.0, 3.0, 0.3333), (1.0, 0.0, None), (None, 1.0, None)]
)
def test_ratio(value: float | None, base: float, expected: float | None) -> None:
    """A ratio without a meaning is None."""
    assert ratio(value, base) == expected


def tenths_of_one(began: float, steps: list[Step], parts: int = 10) -> list[float]:
    """The rates of one worker, one batch after the other: nothing has to be added."""
    share = sum(count for _, count in steps) / parts
    ends: list[float] = []
    done, before = 0, began
    for at, count in sorted(steps):
        while len(ends) < parts and done + count >= share * (len(ends) + 1) - 1e-9:
            ends.append(before + (at - before) * (share * (len(ends) + 1) - done) / count)
        done, before = done + count, at
    starts = [began, *ends[:-1]]
    return [share / max(end - start, 1e-6) for start, end in zip(starts, ends, strict=True)]


def taken(rates: list[float], jobs: int) -> float:
    """How long parts of that many jobs take together."""
    return sum(jobs / len(rates) / rate for rate in rates)


STEPS = st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 1000)), min_size=1, max_size=20)
WORKERS = st.lists(st.tuples(st.floats(0, 0.01), STEPS), min_size=1, max_size=5)


def test_tenths_of_a_steady_run_are_alike() -> None:
    """The same rate all the time is the same rate in each tenth."""
    steps = [(100.0 + n / 10, 50) for n in range(1, 101)]
    assert tenths([(100.0, steps)]) == pytest.approx([500.0] * 10)


def test_tenths_show_a_run_that_slows_down() -> None:
    """Half of the jobs in one second, the other half in three: the tenths say so, in order."""
    steps = [(1.0, 500), (4.0, 500)]
    found = tenths([(0.0, steps)])
    assert found == pytest.approx([500.0] * 5 + [500 / 3] * 5)
    assert min(found) / max(found) == pytest.approx(1 / 3)


def test_tenths_do_not_depend_on_the_batches() -> None:
    """A batch may hold several tenths, and several batches make one."""
    assert tenths([(0.0, [(1.0, 1000), (0.5, 1000)])]) == pytest.approx([2000.0] * 10)


def test_workers_that_settle_together_are_not_infinitely_fast() -> None:
    """A worker has worked on its batch since its own previous batch, not since another worker's."""
    first = (0.0, [(1.0, 500), (2.0, 500)])
    second = (0.0, [(1.00001, 500), (2.00001, 500)])
    assert tenths([first, second]) == pytest.approx([1000.0] * 10, rel=1e-4)
    assert max(tenths_of_one(0.0, [*first[1], *second[1]])) > 1e6  # what it must not be


def test_workers_that_begin_one_after_the_other() -> None:
    """Nothing is spread over the time before a worker began."""
    found = tenths([(0.0, [(1.0, 100), (2.0, 100)]), (1.0, [(2.0, 200)])], parts=4)
    assert found == pytest.approx([100.0, 300.0, 300.0, 300.0])


def test_batches_of_no_time() -> None:
    """Two batches in one tick of the clock: the second one has come, however fast."""
    rates = tenths([(0.0, [(1.0, 100), (1.0, 100)])], parts=2)
    assert rates == pytest.approx([100.0, 100 / 1e-6])


def test_a_batch_of_no_time_at_the_beginning() -> None:
    """It is infinitely fast, or nearly so, and what follows takes the whole time."""
    assert tenths([(0.0, [(0.0, 100), (1.0, 100)])], parts=2) == pytest.approx([100 / 1e-6, 100.0])
    assert tenths([(0.0, [(0.0, 100)])], parts=2) == pytest.approx([50 / 1e-6] * 2)


def test_a_clock_that_was_set_back() -> None:
    """What was settled before the beginning was settled at the beginning."""
    curve = Curve(1.0, [(0.5, 10), (2.0, 10)])
    assert [curve.settled(at) for at in (0.9, 1.0, 1.5, 2.0)] == [0, 10, 15, 20]


@given(STEPS, st.integers(1, 10))
def test_one_worker_is_its_batches_in_their_order(steps: list[Step], parts: int) -> None:
    """Adding the curves of one worker changes nothing."""
    seconds = [1 / rate for rate in tenths([(0.0, steps)], parts)]
    assert seconds == pytest.approx(
        [1 / rate for rate in tenths_of_one(0.0, steps, parts)], rel=1e-6, abs=1e-7
    )


@given(WORKERS, st.integers(1, 10))
def test_tenths_take_the_whole_time(workers: list[tuple[float, list[Step]]], parts: int) -> None:
    """The parts together take the time from the first beginning to the last settlement."""
    found = tenths(workers, parts)
    assert len(found) == parts
    jobs = sum(count for _, steps in workers for _, count in steps)
    whole = max(at for _, steps in workers for at, _ in steps) - min(at for at, _ in workers)
    assert taken(found, jobs) == pytest.approx(whole, rel=1e-6, abs=1e-4)


@given(WORKERS, st.integers(1, 10))
def test_the_parts_follow_each_other(workers: list[tuple[float, list[Step]]], parts: int) -> None:
    """No part ends before its predecessor; each holds its share of the settled jobs."""
    curves = [Curve(began, steps) for began, steps in workers]
    ends = ends_of_parts(curves, parts)
    assert ends == sorted(ends)
    total = sum(curve.total for curve in curves)
    for number, end in enumerate(ends, 1):
        least = sum(curve.settled(end - 1e-6, before=True) for curve in curves)
        most = sum(curve.settled(end + 1e-6) for curve in curves)
        assert least <= total * number / parts + 1e-6
        assert most >= total * number / parts - 1e-6


@given(WORKERS)
def test_a_curve_rises(workers: list[tuple[float, list[Step]]]) -> None:
    """By a later moment no fewer jobs are settled, from none to all."""
    for began, steps in workers:
        curve = Curve(began, steps)
        found = [curve.settled(at / 7) for at in range(800)]
        assert found == sorted(found)
        assert curve.settled(began - 1) == 0
        assert curve.settled(max(at for at, _ in steps)) == sum(count for _, count in steps)


@given(WORKERS)
def test_the_order_of_workers_means_nothing(workers: list[tuple[float, list[Step]]]) -> None:
    """Curves are added."""
    assert tenths(workers) == pytest.approx(tenths(workers[::-1]), rel=1e-6)


def test_no_jobs_have_no_tenths() -> None:
    """Nothing settled is no division by zero, and neither is a worker that got no job."""
    assert tenths([]) == tenths([(0.0, [])]) == []
    assert tenths([(0.0, [(1.0, 10)]), (0.0, [])]) == pytest.approx([10.0] * 10)


def test_growth_compares_quarters() -> None:
    """The last quarter next to the first, by medians: one outlier is no growth."""
    values = [10.0] * 50 + [20.0] * 50
    values[3] = 1000.0
    assert growth(values) == {"first_quarter": 10.0, "last_quarter": 20.0, "last_to_first": 2.0}
    assert growth([])["last_to_first"] is None


def test_distribution_rises_to_all() -> None:
    """Milliseconds and percentages both rise; the last is 100 %."""
    x, y = distribution([0.003, 0.001, 0.002])
    assert x == sorted(x)
    assert (x[0], x[-1], y[-1]) == (1.0, 3.0, 100.0)
