"""Durations and moments as people write them."""

from datetime import datetime, timedelta, timezone

import pytest

from rota.errors import ConfigError
from rota.model.durations import EARLIEST, moment, parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1.5d", 129_600),
        ("2w", 1_209_600),
        (" 5 m ", 300),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A letter says what the number counts; nothing is nothing in any unit."""
    assert parse(text, "--every") == seconds


@pytest.mark.parametrize("text", ["", "m", "10 minutes", "-5m", "1e3", "nan", "inf", "99999999d"])
def test_no_durations(text: str) -> None:
    """Any other text is refused, by the option's name."""
    with pytest.raises(ConfigError, match="--every"):
        parse(text, "--every")


@pytest.mark.parametrize("text", ["10", "10.5", " 7 "])
def test_a_number_without_a_unit(text: str) -> None:
    """A bare number could mean minutes, and is refused."""
    with pytest.raises(ConfigError, match=rf"--older-than: {text.strip()} has no unit"):
        parse(text, "--older-than")
    assert parse(f"{text}m", "--older-than") == 60 * float(text)


@pytest.mark.parametrize("hours", [-23, 0, 23])
def test_moments(hours: int) -> None:
    """At most a century from now; the distant past is simply past, in any time zone."""
    zone = timezone(timedelta(hours=hours))
    soon = datetime.now(zone) + timedelta(days=99 * 365)
    assert moment(soon, "at") == soon
    for far in (soon + timedelta(days=2 * 366), datetime.max.replace(tzinfo=zone)):
        with pytest.raises(ConfigError, match="at: must be at most a century from now"):
            moment(far, "at")
    past = datetime(1999, 1, 1, tzinfo=zone)
    assert moment(past, "at") == past
    assert moment(datetime.min.replace(tzinfo=zone), "at") == EARLIEST
