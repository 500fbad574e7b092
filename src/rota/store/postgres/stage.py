"""Staging: due jobs go from the timer into the log.

The newest mark says up to which `(run_at, id)` timers have been staged, and in which snapshot. The
next staging looks at what lies between there and now, and at the rows of transactions that the
mark's snapshot did not see. It never walks the dead rows that earlier stagings left at the left end
of the index, which is where a plain `ORDER BY run_at` slows down under a held snapshot.

Before that, jobs that wait for a signal are made due if it has come, see `deliver.sql`.
"""

from rota.model.look import Staging
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.statements import sql

STAGE_LOCK = sql("stage/stage_lock")
DELIVER = sql("stage/deliver")
STAGE = sql("stage/stage")
STAGE_NEXT = sql("stage/stage_next")
DUE = sql("stage/due")
WAKE = sql("wake/wake")


@operation(Begin.READING)
def due() -> Steps[float | None]:
    """In how many seconds jobs are to be staged; `None` if none waits for its time."""
    [(seconds,)] = yield DUE()
    return None if seconds is None else float(seconds)


@operation(Begin.HASTY)
def stage(limit: int) -> Steps[Staging]:
    """Make due jobs available, unless another worker is doing so right now."""
    staged = 0
    [(mine,)] = yield STAGE_LOCK()
    if mine:
        # First, so that what it makes due is staged at once.
        yield DELIVER()
        [(staged,)] = yield STAGE(size=limit)
        if staged:
            yield WAKE()
    rows = yield STAGE_NEXT()
    next_due = max(0.0, rows[0][0]) if rows else None
    return Staging(staged, next_due)
