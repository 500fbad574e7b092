"""Whether each job ran once."""

import pytest

from benchmarks.peers.once import NotOnce, check


def test_each_job_ran_once() -> None:
    """In any order; or still waits."""
    assert check([2, 0, 1], 3) == 3
    assert check([2, 0], 3, waiting=1) == 2
    assert check([0, 1, 2], 3, waiting=1) == 3  # one has run, and is not settled


@pytest.mark.parametrize(
    ("ran", "waiting", "said"),
    [
        ([0, 2], 0, "lost 1 of 3 jobs"),
        ([0], 1, "lost 1 of 3 jobs"),
        ([0, 1, 2, 2], 0, "repeated 1 of 3 jobs"),
        ([0, 1, 1], 0, "repeated 1 of 3 jobs and lost 1 of 3 jobs"),
        ([0, 1, 2, 3], 0, "ran 1 jobs that were not enqueued"),
    ],
)
def test_jobs_that_did_not(ran: list[int], waiting: int, said: str) -> None:
    """Lost, repeated, or never enqueued."""
    with pytest.raises(NotOnce, match=said):
        check(ran, 3, waiting)
