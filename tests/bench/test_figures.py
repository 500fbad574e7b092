"""The figures that are made of measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.bench.figures import distribution, growth, milliseconds, percentiles, ratio, tenths


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
    ("one", "other", "expected"), [(1.0, 3.0, 0.3333), (1.0, 0.0, None), (None, 1.0, None)]
)
def test_ratio(one: float | None, other: float, expected: float | None) -> None:
    """A ratio that means nothing is none."""
    assert ratio(one, other) == expected


def test_tenths_of_a_steady_run_are_alike() -> None:
    """The same rate all the time is the same rate in each tenth."""
    steps = [(100.0 + n / 10, 50) for n in range(1, 101)]
    assert tenths(100.0, steps) == pytest.approx([500.0] * 10)


def test_tenths_show_a_run_that_slows_down() -> None:
    """Half of the jobs in one second, the other half in three: the tenths say so, in order."""
    steps = [(1.0, 500), (4.0, 500)]
    found = tenths(0.0, steps)
    assert found == pytest.approx([500.0] * 5 + [500 / 3] * 5)
    assert min(found) / max(found) == pytest.approx(1 / 3)


def test_tenths_do_not_depend_on_the_batches() -> None:
    """A batch may hold several tenths, and several batches make one; workers' steps are mixed."""
    steps = [(1.0, 1000), (0.5, 1000)]
    assert tenths(0.0, steps) == pytest.approx([2000.0] * 10)


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 1000)), min_size=1),
    st.integers(1, 10),
)
def test_tenths_take_the_whole_time(steps: list[tuple[float, int]], parts: int) -> None:
    """The parts together take the time from the beginning to the last settlement."""
    found = tenths(0.0, steps, parts)
    jobs = sum(count for _, count in steps)
    assert len(found) == parts
    taken = sum(jobs / parts / rate for rate in found)
    assert taken == pytest.approx(max(at for at, _ in steps), rel=1e-6, abs=1e-4)


def test_no_jobs_have_no_tenths() -> None:
    """Nothing settled is no division by zero."""
    assert tenths(0.0, []) == []


def test_growth_compares_quarters() -> None:
    """The last quarter next to the first, by medians: one outlier is no growth."""
    values = [10.0] * 50 + [20.0] * 50
    values[3] = 1000.0
    assert growth(values) == {"first_quarter": 10.0, "last_quarter": 20.0, "last_to_first": 2.0}
    assert growth([])["last_to_first"] is None


def test_distribution_rises_to_all() -> None:
    """Milliseconds and percentages both rise; the last one is 100 %."""
    x, y = distribution([0.003, 0.001, 0.002])
    assert x == sorted(x)
    assert (x[0], x[-1], y[-1]) == (1.0, 3.0, 100.0)
