"""Which of many queues have something in the log: the others are idle, and cost a worker nothing.

A look at a lane costs some fifteen microseconds, also where nothing has happened for a year: with a
queue for each tenant most of them. So a worker of many queues first asks the log which are in use.
Where these are many, too, it looks at all of its own, as a worker of few queues does. What else
goes round the lanes again and again (squeezing, signs of life, `rota top`) asks the log in the same
way where there are more than 2,000 lanes (the view `rota.lane_used`).

Rows of queues and lanes are never removed. A producer reads the number of its lane and locks
nothing; its jobs may become visible long after that: the transaction stays open, or is prepared, or
the process stands still between its two statements, where no server can ask it. With the row gone
these jobs would belong to nobody. A flag "asleep" that an enqueue clears would have the same gap:
what a look finds out before that commit is not true after it. So nothing is written down at all. A
lane is awake while the log shows a row of it, and every statement that looks decides so in its own
snapshot: a late commit wakes its lane by being seen. Rows come from producers, from the timer, from
leases and by hand, always by way of the log, so none of these needs a word about it. The cursor of
an idle lane stays where it is, with its holes.

The totals of idle lanes leave the marks: when the cursors turn, what a lane without rows has handed
out is taken from both sides, what was appended and what was claimed (`cursor_repeat.sql`). Their
difference, the available jobs, is the same in every snapshot, whatever commits late.

Known weakness: an idle queue keeps a row of `rota.queue`, one of `rota.lane` for each priority, and
one of the cursor, which a turn copies: 300 bytes. `rota queues list` names it, and reads its
cursor.
"""

from collections.abc import Sequence

from rota.store import queue_names
from rota.store.operation import Steps
from rota.store.postgres.jobs import QUEUE_NAMES
from rota.store.postgres.statements import sql

QUEUES_USED = sql("claim/queues_used")


def in_use(wanted: Sequence[str]) -> Steps[list[str]]:
    """Queues of these names and patterns that may have jobs to claim, each once, in their order."""
    return (yield from queue_names.in_use(wanted, QUEUE_NAMES, QUEUES_USED))
