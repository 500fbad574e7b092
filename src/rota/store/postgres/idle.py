"""Which of many queues have something in the log: the others are idle, and cost a worker nothing.

A look at a lane costs some fifteen microseconds, also where nothing has happened for a year: with a queue
for each tenant most of them. So a worker of many queues first asks the log which are in use. Where
these are many, too, it looks at all of its own, as a worker of few queues does.
"""

from collections.abc import Sequence

from rota.store.operation import Steps
from rota.store.postgres.jobs import QUEUE_NAMES
from rota.store.postgres.statements import sql
from rota.store.queue_names import meant

MANY = 100
"""Queues of a worker up to which it simply looks at all of them."""

MANY_USED = 200
"""Lanes in the log up to which they are told apart."""

QUEUES_USED = sql("claim/queues_used")


def in_use(wanted: Sequence[str]) -> Steps[list[str]]:
    """Those of the queues with these names and patterns that may have something to claim, in their order."""
    queues = yield from meant(wanted, QUEUE_NAMES)
    if len(queues) <= MANY:
        return queues
    rows = yield QUEUES_USED(most=MANY_USED + 1)
    if len(rows) > MANY_USED:
        return queues
    used = {row[0] for row in rows}
    return [queue for queue in queues if queue in used]
