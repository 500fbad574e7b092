"""Counting jobs without counting them.

A mark has all totals as they were in one snapshot. What came since is small and found by its
transaction ids: log entries and changes in the tally. The totals of this moment are the mark's, these,
and the leases, which are few; whoever asks adds them up in one statement and has an exact answer. Squeezing writes them
down as a new mark, so that the next one has less to add. The idea of appended changes that are
squeezed now and then is from Marco Pegoraro's "The Secrets of a Postgres Queue Service"; what is
added is that a snapshot, not a moment, divides what has been counted from what has not, since
transactions end in another order than they began.

What can fail: nothing is lost while nobody squeezes, only the answers take longer. Rows must not go
before they were counted, so whoever truncates a table squeezes first, under its exclusive lock, at
which no row of it is uncommitted and nobody else can be counting it.
"""

from rota.errors import RotaError
from rota.store.operation import Apart, Begin, Steps, operation
from rota.store.postgres.statements import sql

SQUEEZE = sql("counters/squeeze")

MARK_AGE = 0.5
"""Seconds for which a mark is new enough for everybody."""

MUCH = 5_000
"""Rows since the newest mark from which on one who asks for the totals squeezes as well."""


@operation(Begin.HASTY)
def squeeze() -> Steps[bool]:
    """Write the totals of this moment down; see `rota.store.protocol.Store.squeeze`."""
    [(marked,)] = yield SQUEEZE(age=MARK_AGE)
    return bool(marked)


def squeeze_if_allowed() -> Steps[None]:
    """For one who only wanted to look: a standby or a user without rights leaves it to others."""
    try:
        yield Apart(squeeze())
    except RotaError:
        return
