"""Amounts of memory as users write them; a kB is 1,024 bytes, as in PostgreSQL."""

import re

from rota.errors import ConfigError

UNITS = {"kb": 1024, "mb": 1024**2, "gb": 1024**3}
"""Bytes of each unit."""


def parse(text: str, what: str) -> int:
    """Turn what people write into bytes: "500MB", "1.5 GB".

    Raises:
        ConfigError: It is not written like that, nothing at all, or a bare number, which could
            mean bytes or megabytes.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text, re.IGNORECASE)
    unit = match and match[2].lower()
    if match is not None and not unit:
        message = f"{what}: {match[1]} has no unit; write {match[1]}MB or {match[1]}GB"
        raise ConfigError(message)
    if match is None or unit not in UNITS or not float(match[1]):
        message = f"{what}: must be an amount such as 500MB or 2GB (kB, MB, GB), not {text!r}"
        raise ConfigError(message)
    return int(float(match[1]) * UNITS[unit])


def megabytes(size: int) -> str:
    """Such as "731 MB"."""
    return f"{size / UNITS['mb']:.0f} MB"
