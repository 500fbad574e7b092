"""Which queues a worker means that names them by patterns, and which of many are in use."""

import random
from collections.abc import Sequence

from rota.model import patterns
from rota.store.operation import Statement, Steps

MANY = 100
"""Queues of a worker up to which it simply looks at all of them."""

MANY_USED = 200
"""Lanes in use up to which queues are told apart, or a quarter of the worker's queues."""


def meant(wanted: Sequence[str], names: Statement) -> Steps[list[str]]:
    """The queues that these names and patterns mean now; only for patterns it asks which there are."""
    if not any(map(patterns.is_pattern, wanted)):
        return list(wanted)
    found = [name for (name,) in (yield names())]
    # Of equal priority, none shall always come first.
    random.shuffle(found)
    return patterns.meant(wanted, found)


def in_use(wanted: Sequence[str], names: Statement, used: Statement) -> Steps[list[str]]:
    """Those that may have jobs to claim, each once, in order; `names` and `used` ask the store."""
    queues = list(dict.fromkeys((yield from meant(wanted, names))))
    if len(queues) <= MANY:
        return queues
    most = max(MANY_USED, len(queues) // 4)
    rows = yield used(most=most + 1)
    if len(rows) > most:
        return queues
    found = {row[0] for row in rows}
    return [queue for queue in queues if queue in found]
