"""Writing how runs ended, where the worker still holds the lease.

A settlement is fenced by job, lease and session: all three must match a row, and a rescue has
taken lease and session from it. What matched is in the answer of the statement; the rest was
refused. The moves of `settlement.py` come down to three statements: a run ends the job, or lets it
wait for another run, or leaves nothing behind.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, assert_never

from rota.job import JobId, SessionId
from rota.settlement import Settlement
from rota.states import Move
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.sqlite.statements import json_list, sql

SETTLE_FINISH = sql("settle_finish")
SETTLE_WAIT = sql("settle_wait")
SETTLE_FORGET = sql("settle_forget")

SPENT, UNSPENT = 0, 1


@operation(Begin.HASTY)
def settle(session: SessionId, settlements: Sequence[Settlement]) -> Steps[list[JobId]]:
    """Write settlements of jobs that the session still holds; the ids it refused."""
    batches: dict[Statement, list[list[Any]]] = defaultdict(list)
    for one in settlements:
        request, values = _written(one)
        batches[request].append(values)
    settled: set[JobId] = set()
    for request, batch in batches.items():
        rows = yield request(settled=json_list(batch), session=session)
        settled.update(row[0] for row in rows)
    refused = []
    for one in settlements:
        if one.job in settled:
            settled.discard(one.job)
        else:
            refused.append(one.job)
    return refused


def _written(one: Settlement) -> tuple[Statement, list[Any]]:
    """The statement that writes a settlement, and its element of that statement's list."""
    row: list[Any] = [one.job, one.lease]
    match one.move:
        case Move.COMPLETE | Move.CANCEL if one.keep <= 0:
            return SETTLE_FORGET, row
        case Move.COMPLETE:
            return SETTLE_FINISH, [*row, "completed", one.keep, one.result, one.error]
        case Move.CANCEL:
            return SETTLE_FINISH, [*row, "cancelled", one.keep, None, one.error]
        case Move.DISCARD:
            return SETTLE_FINISH, [*row, "discarded", None, None, one.error]
        case Move.RETRY:
            return SETTLE_WAIT, [*row, "retryable", one.delay, SPENT, one.error]
        case Move.SNOOZE:
            return SETTLE_WAIT, [*row, "scheduled", one.delay, UNSPENT, one.error]
        case Move.RELEASE:
            state = "scheduled" if one.delay > 0 else "available"
            return SETTLE_WAIT, [*row, state, one.delay, UNSPENT, one.error]
        case Move.STAGE | Move.CLAIM | Move.RESCUE | Move.RETRY_BY_HAND:
            message = f"{one.move} is nothing a run can end with"
            raise ValueError(message)
    assert_never(one.move)
