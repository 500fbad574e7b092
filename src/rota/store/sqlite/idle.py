"""Which queues and lanes of keys have available jobs: the others are idle, and cost a worker nothing.

A look at a queue or a lane costs a microsecond or two, also where nothing has happened for a year.
With a queue for each tenant, or a key for each user, most of them are idle. So a claim asks the
jobs which ones are in use: the indexes of available jobs are walked from queue to queue and from
lane to lane. Where many are in use, a claim looks at all, and stops as soon as it has enough.

Nothing says that a lane is idle but that it has no available job, so there is nothing that a
producer, a staging or a retry could forget to change. Rows of lanes stay: finished jobs name them,
for a retry by hand, and so may a producer on a connection without transactions, between two
statements.

Known weakness: where more than `MANY_LANES` keys are in use, the idle ones are walked as well.
"""

from collections.abc import Sequence

from rota.store import queue_names
from rota.store.operation import Steps
from rota.store.sqlite.queues import QUEUE_NAMES
from rota.store.sqlite.statements import json_list, sql

MANY_LANES = 500
"""Lanes in use up to which a claim looks at no others."""

QUEUES_USED = sql("claim/queues_used")
LANES_USED = sql("claim/lanes_used")


def in_use(wanted: Sequence[str]) -> Steps[list[str]]:
    """Queues of these names and patterns that may have jobs to claim, each once, in their order."""
    return (yield from queue_names.in_use(wanted, QUEUE_NAMES, QUEUES_USED))


def lanes_in_use() -> Steps[str | None]:
    """The lanes that have available jobs, as a JSON array; `None`: there are many."""
    rows = yield LANES_USED(most=MANY_LANES + 1)
    return None if len(rows) > MANY_LANES else json_list([row[0] for row in rows])
