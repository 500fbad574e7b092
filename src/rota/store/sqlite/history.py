"""The history: one row for each queue and minute, made of the running totals of the counters.

Whichever worker's look finds a minute over writes it down, in one transaction with the look at what
was written before: so each minute is written once. The oldest row of a queue goes when a new one
comes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from rota.model.history import KEPT, MINUTE, Counted, HistoryPoint, Totals, noted
from rota.store.history import History
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.health import LANES, lane
from rota.store.sqlite.statements import json_list, sql

STATE = sql("history/history_state")
FORGET = sql("history/history_forget")
PRUNE = sql("history/history_prune")
TOTALS = sql("history/history_totals")
BEFORE = sql("history/history_before")
WRITE = sql("history/history_write")
READ = sql("history/history_read")


@operation(Begin.HASTY)
def record() -> Steps[bool]:
    """Write down the minute that is over; see `rota.store.history.History`."""
    [(label, newest)] = yield STATE()
    if newest is not None and newest > label:
        yield FORGET(label=label)
        [(_, newest)] = yield STATE()
    if newest == label:
        return False
    counted = yield from _counted()
    before = None
    if newest is not None:
        rows = yield BEFORE(queues=json_list([one.queue for one in counted]))
        before = {queue: Totals(*totals) for queue, *totals in rows}
    found = noted(before, counted)
    written = [[row.queue, *row.gained, row.available, row.oldest, *row.totals] for row in found]
    yield WRITE(rows=json_list(written), label=label, span=0 if newest is None else label - newest)
    yield PRUNE(queues=json_list([row.queue for row in found]), before=label - KEPT)
    return True


def _counted() -> Steps[Sequence[Counted]]:
    oldest: dict[str, float] = {}
    for found in map(lane, (yield LANES())):
        if found.oldest is not None:
            oldest[found.queue] = max(found.oldest, oldest.get(found.queue, 0.0))
    return [
        Counted(
            queue,
            Totals(appended, claimed, completed, discarded),
            max(appended - claimed - removed, 0),
            oldest.get(queue),
        )
        for queue, appended, claimed, completed, discarded, removed in (yield TOTALS())
    ]


@operation(Begin.READING)
def read(queue: str, *, since: int, step: int) -> Steps[list[HistoryPoint]]:
    """The numbers since a minute, in steps of so many minutes."""
    return [
        HistoryPoint(datetime.fromtimestamp(at, UTC), span * MINUTE, *rest)
        for at, span, *rest in (yield READ(queue=queue, since=since, step=step))
    ]


HISTORY = History(record, read)
