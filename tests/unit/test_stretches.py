"""Ids that follow one another are settled by their range, and no other job with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.model.job import JobId
from rota.store.postgres.settle_write import stretches

IDS = st.lists(st.integers(1, 60), min_size=1).map(lambda ids: [JobId(number) for number in ids])


@given(IDS)
def test_the_ranges_are_the_jobs(jobs: list[JobId]) -> None:
    """Together the ranges name each job once, duplicates or not, and no other job."""
    found = [range(first, last + 1) for first, last in zip(*stretches(jobs), strict=True)]
    assert [job for stretch in found for job in stretch] == sorted(set(jobs))


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([7], ([7], [7])),
        ([3, 1, 2], ([1], [3])),
        ([1, 1, 3], ([1, 3], [1, 3])),
        ([9, 1, 8], ([1, 8], [1, 9])),
    ],
)
def test_they_are_cut_at_gaps(jobs: list[JobId], expected: tuple[list[int], list[int]]) -> None:
    """There are as few ranges as possible."""
    assert stretches(jobs) == expected
