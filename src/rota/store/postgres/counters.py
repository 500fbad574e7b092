"""Counting jobs without counting them.

A mark has all totals as they were in one snapshot. What came since is small and found by its
transaction ids: log entries and changes in the tally. The totals of this moment are the mark's,
these, and the leases, which are few: one statement adds them up, and is exact. Squeezing writes the
sums down as a new mark, so that the next statement has less to add. The idea of appended changes
that are squeezed now and then is from Marco Pegoraro's "The Secrets of a Postgres Queue Service";
what is added is that a snapshot, not a moment, divides what has been counted from what has not,
since transactions end in another order than they began.

What can fail: without squeezing nothing is lost, only the answers take longer. Rows must be counted
before they go, so a table is squeezed before it is truncated, under its exclusive lock: then none
of its rows is uncommitted, and no other session is counting it.
"""

from rota.errors import RotaError
from rota.store.operation import Apart, Begin, Steps, operation
from rota.store.postgres.statements import sql

SQUEEZE = sql("counters/squeeze")

MARK_AGE = 0.5
"""Seconds for which a mark is new enough."""

MUCH = 5_000
"""Rows since the newest mark from which on a look at the totals squeezes as well."""


@operation(Begin.HASTY)
def squeeze() -> Steps[bool]:
    """Write the totals of this moment down; see `rota.store.protocol.Store.squeeze`."""
    [(marked,)] = yield SQUEEZE(age=MARK_AGE)
    return bool(marked)


def squeeze_if_allowed() -> Steps[None]:
    """Squeeze after a look, but not on a standby or without the rights to."""
    try:
        yield Apart(squeeze())
    except RotaError:
        return
