"""Waits between attempts."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import ConfigError
from rota.model.backoff import Backoff
from rota.model.durations import LONGEST, moment, seconds


@given(
    first=st.floats(0, 1000),
    factor=st.floats(1, 10),
    cap=st.floats(0, 100_000),
    jitter=st.floats(0, 1),
    attempt=st.integers(1, 30_000),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_within_bounds(  # noqa: PLR0917
    first: float, factor: float, cap: float, jitter: float, attempt: int, chance: float
) -> None:
    """A wait lies between the whole one without its jitter and the cap, however many attempts."""
    backoff = Backoff(first=first, factor=factor, cap=cap, jitter=jitter)
    whole = backoff.wait(attempt, chance=0.0)
    wait = backoff.wait(attempt, chance=chance)
    assert 0 <= whole * (1 - jitter) <= wait + 1e-6
    assert wait <= whole <= cap


def test_grows_to_the_cap() -> None:
    """Without jitter the waits are first, first times factor, and so on up to the cap."""
    backoff = Backoff(first=2, factor=3, cap=20, jitter=0)
    assert [backoff.wait(attempt) for attempt in range(1, 6)] == [2, 6, 18, 20, 20]


def test_jitter_spreads() -> None:
    """With jitter two jobs that failed together hardly ever wait the same time."""
    assert len({Backoff().wait(1) for _ in range(50)}) > 40


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": -1},
        {"first": float("nan")},
        {"cap": float("inf")},
        {"factor": 0.5},
        {"jitter": 1.5},
        {"attempts": 0},
        {"attempts": 1.5},
        {"attempts": True},
    ],
)
def test_refuses(wrong: dict[str, float]) -> None:
    """Values outside their range are refused when the policy is made."""
    with pytest.raises(ConfigError):
        Backoff(**wrong)  # type: ignore[arg-type]


def test_durations() -> None:
    """Numbers of seconds and timedeltas mean the same; impossible waits are refused."""
    assert seconds(timedelta(minutes=1), "x") == seconds(60, "x") == 60.0
    for wrong in (-0.1, float("nan"), float("inf"), LONGEST * 2, True, "5", timedelta(days=-1)):
        with pytest.raises(ConfigError, match=r"^x: "):
            seconds(wrong, "x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^at: "):
        moment("tomorrow", "at")  # type: ignore[arg-type]
