"""Writing how runs ended, where the worker still holds the lease.

A settlement is fenced by job, lease and session: all three must match a row, and a rescue has
taken lease and session from it. What matched is in the answer of the statement; the rest was
refused. The moves of `settlement.py` come down to four statements: a run ends the job, or lets it
wait for another run or another round, or leaves nothing behind.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, assert_never

from rota.model.job import JobId, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Begin, Statement, Steps, Then, operation
from rota.store.sqlite.counters import PLACE, added
from rota.store.sqlite.enqueue_keyed import ended, moved_on
from rota.store.sqlite.statements import json_list, sql

SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_FORGET = sql("settle/settle_forget")
SETTLE_AGAIN = sql("settle/settle_again")

_ENDS = {
    Move.COMPLETE: State.COMPLETED,
    Move.CANCEL: State.CANCELLED,
    Move.DISCARD: State.DISCARDED,
}

_UNSPENT = {Move.RETRY: 0, Move.SNOOZE: 1, Move.RELEASE: 1}
"""How many attempts a move gives back."""


@operation(Begin.HASTY, then=Then.WAITERS)
def settle(session: SessionId, settlements: Sequence[Settlement]) -> Steps[list[JobId]]:
    """Write settlements of jobs that the session still holds; the ids it refused."""
    batches: dict[Statement, list[list[Any]]] = defaultdict(list)
    for one in settlements:
        request, values = _written(one)
        batches[request].append(values)
    settled: set[JobId] = set()
    keyed = {one.job for one in settlements if one.unique_key is not None}
    for request, batch in batches.items():
        rows = yield request(settled=json_list(batch), session=session)
        settled.update(row[0] for row in rows)
        if request is not SETTLE_FORGET:
            yield from added(Counter(map(PLACE, rows)))
        if keyed:
            theirs = [row for row in rows if row[0] in keyed]
            if request is SETTLE_FORGET:
                yield from ended([row[0] for row in theirs])
            else:
                yield from moved_on(theirs)
    refused = []
    for one in settlements:
        if one.job in settled:
            settled.discard(one.job)
        else:
            refused.append(one.job)
    return refused


def _written(one: Settlement) -> tuple[Statement, list[Any]]:
    """The statement that writes a settlement, and its element of that statement's list."""
    match one.move:
        case Move.COMPLETE | Move.CANCEL if not one.keep:
            return SETTLE_FORGET, [one.job, one.lease]
        case Move.DISCARD if one.keep == 0:
            return SETTLE_FORGET, [one.job, one.lease]
        case Move.COMPLETE | Move.CANCEL | Move.DISCARD:
            # What was discarded without a retention stays until somebody deletes or retries it.
            end = _ENDS[one.move]
            return SETTLE_FINISH, [one.job, one.lease, end, one.keep, one.result, one.error]
        case Move.RETRY | Move.SNOOZE | Move.RELEASE:
            state = _wait(one)
            unspent = _UNSPENT[one.move]
            return SETTLE_WAIT, [one.job, one.lease, state, one.delay, unspent, one.error]
        case Move.AGAIN:
            at = None if one.at is None else one.at.timestamp()
            return SETTLE_AGAIN, [one.job, one.lease, one.delay, at]
        case Move.STAGE | Move.CLAIM | Move.RESCUE | Move.RETRY_BY_HAND:
            message = f"{one.move} is nothing that a run can end with"
            raise ValueError(message)
    assert_never(one.move)


def _wait(one: Settlement) -> State:
    if one.move is Move.RETRY:
        return State.RETRYABLE
    if one.move is Move.RELEASE and one.delay <= 0:
        return State.AVAILABLE
    return State.SCHEDULED
