"""Durations and moments as users write them."""

import math
from datetime import datetime, timedelta

from rota.errors import ConfigError

LONGEST = 100 * 366 * 86400.0
"""A century, in seconds: more than any wait that is meant, less than a database's time can hold."""


def seconds(value: float | timedelta, what: str) -> float:
    """Turn a number of seconds or a timedelta into seconds.

    Raises:
        ConfigError: It is negative, not a finite number, or longer than a century.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = (
            f"{what}: a number of seconds or a timedelta is needed, not {type(value).__name__}"
        )
        raise ConfigError(message)
    if not math.isfinite(value) or not 0 <= value <= LONGEST:
        message = f"{what}: between 0 and {LONGEST:.0f} seconds are possible, not {value}"
        raise ConfigError(message)
    return float(value)


def moment(value: datetime, what: str) -> datetime:
    """Check that a moment names its time zone.

    Raises:
        ConfigError: It is naive, or not a datetime.
    """
    if not isinstance(value, datetime):
        message = f"{what}: a datetime is needed, not {type(value).__name__}"
        raise ConfigError(message)
    if value.utcoffset() is None:
        message = (
            f"{what}: this datetime has no time zone, so it could mean several moments; "
            "use datetime.now(UTC) or .astimezone()"
        )
        raise ConfigError(message)
    return value
