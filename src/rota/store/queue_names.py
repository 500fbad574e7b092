"""Which queues a worker means that names them by patterns."""

import random
from collections.abc import Sequence

from rota.model import patterns
from rota.store.operation import Statement, Steps


def meant(wanted: Sequence[str], names: Statement) -> Steps[list[str]]:
    """The queues that these names and patterns mean now; only for patterns it asks which there are."""
    if not any(map(patterns.is_pattern, wanted)):
        return list(wanted)
    found = [name for (name,) in (yield names())]
    # Of equal priority, none shall always come first.
    random.shuffle(found)
    return patterns.meant(wanted, found)
