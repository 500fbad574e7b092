"""Writing how runs ended, where the worker still holds the lease.

A settlement is fenced by job, lease and session: all three must match a row, and a rescue has
taken lease and session from it. What matched is in the answer of the statement; the rest was
refused, and its successor is not enqueued. The moves of `settlement.py` come down to four statements: a run ends the job, or lets it
wait for another run or another round, or leaves nothing behind.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from rota.model.job import JobId, SessionId
from rota.model.settlement import Completions, Settled, Settlement, separate
from rota.model.states import Move, State
from rota.store.following import following
from rota.store.operation import Begin, Operation, Statement, Stepped, Steps, Then
from rota.store.sqlite.counters import BUCKET, added, gone
from rota.store.sqlite.enqueue import append
from rota.store.sqlite.enqueue_keyed import ended, moved_on
from rota.store.sqlite.statements import json_list, sql
from rota.store.sqlite.tasks import pass_on

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


def settle(
    session: SessionId,
    settlements: Sequence[Settlement],
    completions: Sequence[Completions] = (),
) -> Operation[Settled]:
    """Write settlements of jobs that the session still holds; the ids it refused."""
    settlements = [*settlements, *separate(completions)]
    steps = settle_in_steps(session, settlements)
    return Stepped("settle", steps, Begin.HASTY, woken(settlements))


def woken(settlements: Iterable[Settlement]) -> Then:
    """Who has a reason to wake after settlements: workers, if there are successors."""
    followed = any(settlement.successor is not None for settlement in settlements)
    return Then.WAITERS | Then.WORKERS if followed else Then.WAITERS


def settle_in_steps(session: SessionId, settlements: Sequence[Settlement]) -> Steps[Settled]:
    """The steps of it, as a part of a larger transaction, too."""
    batches: dict[Statement, list[list[Any]]] = defaultdict(list)
    for settlement in settlements:
        request, values = _written(settlement)
        batches[request].append(values)
    settled: set[JobId] = set()
    unique = {settlement.job for settlement in settlements if settlement.unique_key is not None}
    unknown = {settlement.job for settlement in settlements if settlement.unknown}
    ends = {settlement.job: _ENDS.get(settlement.move) for settlement in settlements}
    for request, batch in batches.items():
        rows = yield request(settled=json_list(batch), session=session)
        settled.update(row[0] for row in rows)
        if request is SETTLE_FORGET:
            yield from gone((queue, ends[job]) for job, queue in rows)
        else:
            yield from added(Counter(map(BUCKET, rows)))
        if unknown:
            yield from pass_on([row[0] for row in rows if row[0] in unknown])
        if unique:
            theirs = [row for row in rows if row[0] in unique]
            if request is SETTLE_FORGET:
                yield from ended([row[0] for row in theirs])
            else:
                yield from moved_on(theirs)
    refused = []
    successors = []
    for settlement in settlements:
        if settlement.job in settled:
            settled.discard(settlement.job)
            successors.append(settlement.successor)
        else:
            refused.append(settlement.job)
    return Settled(refused, (yield from following(successors, append)))


def _written(settlement: Settlement) -> tuple[Statement, list[Any]]:
    """The statement that writes a settlement, and its element of that statement's list."""
    move, keep, error = settlement.move, settlement.keep, settlement.error
    held = [settlement.job, settlement.lease]
    match move:
        case Move.COMPLETE | Move.CANCEL if not keep:
            return SETTLE_FORGET, held
        case Move.DISCARD if keep == 0:
            return SETTLE_FORGET, held
        case Move.COMPLETE | Move.CANCEL | Move.DISCARD:
            # A job discarded without a retention stays until a user deletes or retries it.
            return SETTLE_FINISH, [*held, _ENDS[move], keep, settlement.result, error]
        case Move.RETRY | Move.SNOOZE | Move.RELEASE:
            delay = settlement.delay
            ran = move is not Move.RELEASE
            return SETTLE_WAIT, [*held, _wait(settlement), delay, _UNSPENT[move], error, ran]
        case Move.AGAIN:
            at = None if settlement.at is None else settlement.at.timestamp()
            return SETTLE_AGAIN, [*held, settlement.delay, at]
        case Move.STAGE | Move.CLAIM | Move.RESCUE | Move.RETRY_BY_HAND:
            message = f"a run cannot end with {move}"
            raise ValueError(message)
    assert_never(move)


def _wait(settlement: Settlement) -> State:
    if settlement.move is Move.RETRY:
        return State.RETRYABLE
    if settlement.move is Move.RELEASE and settlement.delay <= 0:
        return State.AVAILABLE
    return State.SCHEDULED
