"""Rhythm: when a worker may believe that others are silent."""

import pytest

from rota.worker.rhythm import Rhythm

TIMEOUT = 10.0


def looks(rhythm: Rhythm, *times: float, clock: float = 1000.0) -> None:
    """Looks at these seconds, by a clock that said this at the beginning."""
    for time in times:
        rhythm.look(clock + time)


def test_the_first_looks() -> None:
    """A worker that has just started knows nothing yet."""
    rhythm = Rhythm(TIMEOUT)
    looks(rhythm, 0, 1, 2, 3, 4)
    assert not rhythm.steady
    looks(rhythm, 5)
    assert rhythm.steady


@pytest.mark.parametrize("jump", [+5.0, -5.0, +3600.0, -3600.0])
def test_a_clock_that_jumps(jump: float) -> None:
    """From the jump on it takes as long as from the start."""
    rhythm = Rhythm(TIMEOUT)
    looks(rhythm, *range(10))
    assert rhythm.steady
    for time in range(10, 15):
        looks(rhythm, time, clock=1000.0 + jump)
        assert not rhythm.steady
    looks(rhythm, 15, clock=1000.0 + jump)
    assert rhythm.steady


def test_a_pause() -> None:
    """So it does where there was no look for a while, or one that took long."""
    rhythm = Rhythm(TIMEOUT)
    looks(rhythm, *range(10))
    looks(rhythm, 15.0, 16.0, 17.0, 18.0, 19.0)
    assert not rhythm.steady
    looks(rhythm, 20.0)
    assert rhythm.steady


def test_a_clock_that_is_slewed() -> None:
    """A clock that goes a little faster or slower does not matter."""
    rhythm = Rhythm(TIMEOUT)
    for time in range(10):
        rhythm.look(1000.0 + 1.5 * time)
    assert rhythm.steady
