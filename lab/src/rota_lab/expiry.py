"""After how long designs take a job away from its worker, in experiments that wait for that.

Names are the settings of strategies, in seconds. These times are shorter than the designs' own, so
that experiments do not take minutes; `--set` changes them.
"""

from collections.abc import Mapping

EXPIRY: Mapping[str, float] = {
    "session_timeout": 5,  # rota
    "lock_seconds": 10,  # fetchq
    "too_long": 5,  # sequence-requeued
    "retry_after": 4,  # laravel, as in article 5
}

QUICK_EXPIRY: Mapping[str, float] = {
    "session_timeout": 1,
    "lock_seconds": 2,
    "too_long": 2,
    "retry_after": 2,
}
