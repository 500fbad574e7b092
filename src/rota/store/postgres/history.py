"""The history: one row for each queue and minute, made of the running totals of the counters.

Whichever worker's look finds a minute over writes it down (`sql/wake/look.sql` compares the clock
with a sequence), while it has the turn of the housekeepers, which it looks for but does not wait
for. So each minute is written once, and the ring does not turn meanwhile. The totals of before are
read from the rows of the segment where the newest minute is: the first minute in a segment has a
row for each queue, later ones only for those with something to say.

Nothing is updated or deleted, and a segment is truncated when its newest minute is a week old.

Known weakness: where there are many lanes (`rota.lane_few`), the totals of an idle queue begin anew
now and then. That is seen where they have become smaller, and the queue has a single lane; else
some of its jobs are missing in one minute.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from rota.model.history import MINUTE, Counted, HistoryPoint, Totals, noted
from rota.store.history import History
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.health import LANES
from rota.store.postgres.rings import TURN_LOCK
from rota.store.postgres.statements import sql

STATE = sql("history/history_state")
FORGET = sql("history/history_forget")
TOTALS = sql("history/history_totals")
BEFORE = sql("history/history_before")
WRITE = sql("history/history_write")
READ = sql("history/history_read")


@operation(Begin.HASTY)
def record() -> Steps[bool]:
    """Write down the minute that is over; see `rota.store.history.History`."""
    [(mine,)] = yield TURN_LOCK()
    if not mine:
        return False
    [(label, segment, newest, place, recorded)] = yield STATE()
    if newest is not None and newest > label:
        yield FORGET(label=label)
        [(_, _, newest, place, _)] = yield STATE()
    if newest == label:
        return False
    counted = yield from _counted()
    before = None
    if newest is not None and recorded:
        rows = yield BEFORE(segment=place, queues=[one.queue for one in counted])
        before = {queue: Totals(*totals) for queue, *totals in rows}
    found = noted(before, counted, whole=place != segment)
    names = Totals._fields
    yield WRITE(
        label=label,
        span=0 if before is None else label - newest,
        segment=segment,
        queues=[row.queue for row in found],
        available=[row.available for row in found],
        oldest=[row.oldest for row in found],
        **{name: [row.gained[at] for row in found] for at, name in enumerate(names)},
        **{f"total_{name}": [row.totals[at] for row in found] for at, name in enumerate(names)},
    )
    return True


def _counted() -> Steps[Sequence[Counted]]:
    oldest: dict[str, float] = {}
    for queue, _, _, seconds, _ in (yield LANES()):
        if seconds is not None:
            oldest[queue] = max(seconds, oldest.get(queue, 0.0))
    return [
        Counted(
            queue,
            Totals(appended, claimed, completed, discarded),
            max(appended - claimed - removed, 0),
            oldest.get(queue),
            lanes,
        )
        for queue, appended, claimed, completed, discarded, removed, lanes in (yield TOTALS())
    ]


@operation(Begin.READING)
def read(queue: str, *, since: int, step: int) -> Steps[list[HistoryPoint]]:
    """The numbers since a minute, in steps of so many minutes."""
    return [
        HistoryPoint(datetime.fromtimestamp(at, UTC), span * MINUTE, *rest)
        for at, span, *rest in (yield READ(queue=queue, since=since, step=step))
    ]


HISTORY = History(record, read)
