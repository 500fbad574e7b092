"""How long designs wait until they take a job away from its worker, in experiments that wait for it.

Names are the settings of strategies, in seconds; an experiment has the shorter times among its own
settings, so that nobody waits for minutes, and `--set` has others.
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
