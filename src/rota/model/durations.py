"""Durations and moments as users write them."""

import math
import re
from datetime import UTC, datetime, timedelta

from rota.errors import ConfigError

LONGEST = 100 * 366 * 86400.0
"""A century, in seconds: more than any wait that is meant, less than a database's time can hold."""

EARLIEST = datetime.fromtimestamp(0, UTC)
"""Stands for every earlier moment: all are past, and a database's time cannot hold every one."""

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
"""What the letters behind a number mean, in seconds."""


def seconds(value: float | timedelta, what: str) -> float:
    """Turn a number of seconds or a timedelta into seconds.

    Raises:
        ConfigError: It is negative, not a finite number, or longer than a century.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{what}: must be a number of seconds or a timedelta, not {type(value).__name__}"
        raise ConfigError(message)
    if not math.isfinite(value) or not 0 <= value <= LONGEST:
        message = f"{what}: must be between 0 and {LONGEST:.0f} seconds, not {value}"
        raise ConfigError(message)
    return float(value)


def parse(text: str, what: str) -> float:
    """Turn what people write into seconds: "90s", "10m", "2h", "1.5d", "2w", "0".

    Raises:
        ConfigError: It is not written like that, longer than a century, or a bare number, which
            could mean minutes or seconds.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*", text)
    if match is None:
        message = f"{what}: must be a duration such as 90s, 10m, 2h or 1d, not {text!r}"
        raise ConfigError(message)
    number = float(match[1])
    if number and not match[2]:
        message = f"{what}: {match[1]} has no unit; write {match[1]}s, {match[1]}m or {match[1]}h"
        raise ConfigError(message)
    return seconds(number * UNITS[match[2]], what)


def written(duration: float) -> str:
    """The duration as `parse` reads it, such as "36h".

    It is in days, hours, minutes or seconds, the largest that need no fraction.
    """
    if math.isinf(duration):
        return "forever"
    for letter in ("d", "h", "m"):
        if duration and duration % UNITS[letter] == 0:
            return f"{duration / UNITS[letter]:.0f}{letter}"
    return f"{duration:f}".rstrip("0").rstrip(".") + "s"


def aware(value: datetime, what: str) -> datetime:
    """Check that a moment names its time zone.

    Raises:
        ConfigError: It is naive, or not a datetime.
    """
    if not isinstance(value, datetime):
        message = f"{what}: must be a datetime, not {type(value).__name__}"
        raise ConfigError(message)
    if value.utcoffset() is None:
        message = (
            f"{what}: this datetime has no time zone, so it could mean several moments; "
            "use datetime.now(UTC) or .astimezone()"
        )
        raise ConfigError(message)
    return value


def moment(value: datetime, what: str) -> datetime:
    """Check the moment at which something is to start; one before 1970 becomes 1970.

    Raises:
        ConfigError: It is naive, not a datetime, or more than a century ahead.
    """
    if (aware(value, what) - datetime.now(UTC)).total_seconds() > LONGEST:
        message = f"{what}: must be at most a century from now, not {value}"
        raise ConfigError(message)
    return max(value, EARLIEST)
