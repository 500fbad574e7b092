"""Numbers and durations in few characters."""

import pytest

from rota.top import figures

SIX = 6


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (4711, "4,711"),
        (99_999, "99,999"),
        (100_000, "100k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (1_234_567, "1.23M"),
        (12_345_678, "12.3M"),
        (99_960_000, "100M"),
        (7_000_000_000, "7.00G"),
        (-5, "-5"),
    ],
)
def test_number(value: int, text: str) -> None:
    """Up to six digits in full, then three and a letter."""
    assert figures.number(value) == text
    assert len(text) <= SIX


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (0.01, "<0.1"), (0.34, "0.3"), (9.94, "9.9"), (9.96, "10"),
     (66_999.6, "67,000"), (250_000.0, "250k")],
)  # fmt: skip
def test_rate(value: float | None, text: str) -> None:
    """Slow rates have a decimal, and none is written as nothing."""
    assert figures.rate(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (-0.2, "<1s"), (0.9, "<1s"), (1.0, "1s"), (59.9, "59s"), (60.0, "1m00s"),
     (3599.9, "59m59s"), (3600.0, "1h00m"), (86399.0, "23h59m"), (86400.0, "1d00h"),
     (99 * 86400.0, "99d00h"), (100 * 86400.0, "100d")],
)  # fmt: skip
def test_age(seconds: float | None, text: str) -> None:
    """Two units at most; never rounded up, so that no figure is ahead of its time."""
    assert figures.age(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (0.4, "<1s"), (45.0, "45s"), (99.0, "1m"), (3599.0, "59m"), (11_100.0, "3h"),
        (187_200.0, "2d"), (9_000_000.0, "104d"),
    ],
)  # fmt: skip
def test_roughly(seconds: float | None, text: str) -> None:
    """With a mark behind it, it still fits into a figure's place."""
    assert figures.roughly(seconds) == text
    assert len(text) <= SIX


def test_sparkline() -> None:
    """The largest is full, nothing is lowest, what is not known is blank, little is not nothing."""
    assert figures.sparkline([None, 0.0, 0.001, 50.0, 100.0]) == " ▁▂▅█"
    assert figures.sparkline([0.0, 0.0]) == "▁▁"
    assert figures.sparkline([None, None]) == "  "
    assert figures.sparkline([]) == ""
