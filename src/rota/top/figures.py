"""Numbers and durations in at most six characters, and a minute in a few."""

import re
from collections.abc import Sequence

LONG_NUMBER = 100_000
BARS = "▁▂▃▄▅▆▇█"

MINUTE, HOUR, DAY = 60, 3600, 86400


def number(value: int) -> str:
    """Such as "4,711", "99,999", "123k", "1.23M"."""
    if value < LONG_NUMBER:
        return f"{value:,}"
    amount = float(value)
    for unit in "kMGT":
        amount /= 1000
        # 999.5 would be written as 1000.
        if amount < 999.5:  # noqa: PLR2004
            decimals = 0 if amount >= 99.95 else 1 if amount >= 9.995 else 2  # noqa: PLR2004
            return f"{amount:.{decimals}f}{unit}"
    return f"{amount:,.0f}T"


def rate(value: float | None) -> str:
    """Jobs per second, such as "0", "0.3", "12", "67,000"; "" where it is not known."""
    if value is None:
        return ""
    if 0 < value < 9.95:  # noqa: PLR2004
        return f"{value:.1f}" if value >= 0.05 else "<0.1"  # noqa: PLR2004
    return number(round(value))


def age(seconds: float | None) -> str:
    """A duration, such as "<1s", "45s", "12m", "3h05m", "2d04h"; "" where it is not known."""
    if seconds is None:
        return ""
    if seconds < 1:
        return "<1s"
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m{whole % MINUTE:02}s"
    if whole < DAY:
        return f"{whole // HOUR}h{whole % HOUR // MINUTE:02}m"
    days = whole // DAY
    return f"{days}d{whole % DAY // HOUR:02}h" if days < 100 else f"{days}d"  # noqa: PLR2004


def roughly(seconds: float | None) -> str:
    """The largest unit of a duration alone, such as "<1s", "45s", "12m", "3h", "2d"."""
    return re.sub(r"(\d[dhm]).*", r"\1", age(seconds))


def sparkline(values: Sequence[float | None]) -> str:
    """A bar per value, relative to the largest; a blank where it is not known."""
    largest = max((value for value in values if value is not None), default=0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        if value <= 0 or largest <= 0:
            return BARS[0]
        # Whatever is not nothing differs from nothing.
        return BARS[max(1, round(value / largest * (len(BARS) - 1)))]

    return "".join(map(bar, values))
