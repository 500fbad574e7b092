"""Durations, sizes and counts as people read them."""

UNITS = (("d", 86400), ("h", 3600), ("min", 60))
KIB = 1024


def duration(seconds: float | None) -> str:
    """Such as "3 h 12 min", "45 s", "120 ms"."""
    if seconds is None:
        return "an unknown time"
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    whole = round(seconds)
    for number, (unit, length) in enumerate(UNITS):
        if whole >= length:
            smaller, least = (*UNITS, ("s", 1))[number + 1]
            rest = whole % length // least
            return f"{whole // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def size(count: int) -> str:
    """Such as "24 kB", "1.5 GB"; a kB is 1,024 bytes, as in PostgreSQL."""
    amount, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < KIB:
            break
        amount, unit = amount / KIB, larger
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "bytes" else f"{amount:.1f} {unit}"  # noqa: PLR2004 - one decimal below ten


def count(number: int, noun: str) -> str:
    """Such as "1 job", "12,000 jobs"."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"
