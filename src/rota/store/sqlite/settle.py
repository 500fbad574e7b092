"""Writing how runs ended, where the worker still holds the lease.

A settlement is fenced by job, lease and session: all three must match a row, and a rescue has taken
lease and session from it. What matched is in the answer; the rest was refused, and its successor is
not enqueued. The moves of `settlement.py` come down to a few statements: a run ends the job, or
leaves nothing behind, or lets it wait for another run or another round.

Most jobs of a lease end alike. These are found by one statement and ended by another one, each with
nothing but their ids: that takes half the time of a list that says for each job how it ended, and
of rows that come back.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rota.model.job import LeaseId, SessionId
from rota.model.settlement import Completions, Settled, Settlement, separate
from rota.model.states import Move, State
from rota.store.following import following
from rota.store.operation import Begin, Operation, Rows, Statement, Stepped, Steps, Then
from rota.store.sqlite.counters import BUCKET, added, gone
from rota.store.sqlite.enqueue import append
from rota.store.sqlite.enqueue_keyed import ended, moved_on
from rota.store.sqlite.statements import json_list, numbers, sql, texts
from rota.store.sqlite.tasks import pass_on

SETTLE_HELD = sql("settle/settle_held")
SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_FINISH_TOLD = sql("settle/settle_finish_told")
SETTLE_FORGET = sql("settle/settle_forget")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_AGAIN = sql("settle/settle_again")
PAUSE = sql("memory/pause")
DELIVER = sql("memory/deliver")
MEMORY_DELETE = sql("memory/memory_delete")

_ENDS = {
    Move.COMPLETE: State.COMPLETED,
    Move.CANCEL: State.CANCELLED,
    Move.DISCARD: State.DISCARDED,
}

_UNSPENT = {Move.RETRY: 0, Move.SNOOZE: 1, Move.RELEASE: 1}
"""How many attempts a move gives back."""


class _End(NamedTuple):
    """What jobs have in common that end alike."""

    lease: LeaseId
    state: State
    keep: float | None

    @property
    def kept(self) -> bool:
        """Whether a row stays.

        That of a job discarded without a retention stays until a user deletes or retries it.
        """
        return bool(self.keep) or (self.keep is None and self.state is State.DISCARDED)


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
    """Who has reason to wake after settlements: workers, if successors or flow nodes may begin."""
    followed = any(
        settlement.successor is not None or settlement.node is not None
        for settlement in settlements
    )
    return Then.WAITERS | Then.WORKERS if followed else Then.WAITERS


def settle_in_steps(session: SessionId, settlements: Sequence[Settlement]) -> Steps[Settled]:
    """The steps of it, as a part of a larger transaction, too."""
    ends: dict[tuple[LeaseId, State, float | None], list[Settlement]] = defaultdict(list)
    waits: dict[Statement, list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        if (state := _ENDS.get(settlement.move)) is not None:
            ends[settlement.lease, state, settlement.keep].append(settlement)
        else:
            waits[_waiting(settlement.move)].append(settlement)
    settled: set[int] = set()
    cancelled: set[int] = set()
    for end, group in ends.items():
        settled.update((yield from _end(session, _End(*end), group)))
    for statement, group in waits.items():
        rows = yield from _wait(session, statement, group)
        settled.update(row[0] for row in rows)
        cancelled.update(row[0] for row in rows if row[2] == State.CANCELLED)
    refused = []
    successors = []
    members = []
    for settlement in settlements:
        if settlement.job in settled:
            settled.discard(settlement.job)
            successors.append(settlement.successor)
            if settlement.node is not None:
                members.append(
                    settlement._replace(move=Move.CANCEL)
                    if settlement.job in cancelled
                    else settlement
                )
        else:
            refused.append(settlement.job)
    if members:
        from rota.store.sqlite.flows import (
            settled as members_settled,
        )  # here: few jobs are of flows

        yield from members_settled(members)
    return Settled(refused, (yield from following(successors, append)))


def _end(session: SessionId, end: _End, group: Sequence[Settlement]) -> Steps[Sequence[int]]:
    """End the jobs of a group that the session still holds; their ids."""
    fence = {"session": session, "lease": end.lease}
    jobs = json_list([settlement.job for settlement in group])
    [(found, queues, now, until)] = yield SETTLE_HELD(jobs=jobs, keep=end.keep, **fence)
    held = numbers(found)
    if not held:
        return held
    if len(held) < len(group):
        some = frozenset(held)
        group = [settlement for settlement in group if settlement.job in some]
    by_queue = Counter(texts(queues))
    if end.kept:
        yield from _finish(group, {"state": end.state.value, "now": now, "until": until, **fence})
        yield from added({(queue, end.state.value, until): n for queue, n in by_queue.items()})
    else:
        yield SETTLE_FORGET(jobs=found, **fence)
        yield from gone(by_queue, end.state)
    yield from ended([one.job for one in group if one.unique_key is not None])
    return held


def _finish(group: Sequence[Settlement], common: dict[str, object]) -> Steps[None]:
    told = [
        (one.job, one.result, one.error)
        for one in group
        if one.result is not None or one.error is not None
    ]
    if told:
        yield SETTLE_FINISH_TOLD(told=json_list(told), **common)
    if len(told) < len(group):
        jobs = [one.job for one in group if one.result is None and one.error is None]
        yield SETTLE_FINISH(jobs=json_list(jobs), **common)


def _wait(session: SessionId, statement: Statement, group: Sequence[Settlement]) -> Steps[Rows]:
    """Let the jobs of a group wait that the session still holds; their ids, queues and states."""
    write = _again if statement is SETTLE_AGAIN else _another_run
    rows = yield statement(settled=json_list([write(one) for one in group]), session=session)
    yield from added(Counter(map(BUCKET, rows)))
    unknown = {one.job for one in group if one.unknown}
    yield from pass_on([row[0] for row in rows if row[0] in unknown])
    unique = {one.job for one in group if one.unique_key is not None}
    yield from moved_on([row for row in rows if row[0] in unique])
    held = {row[0] for row in rows if row[2] == State.SCHEDULED}
    yield from _remember([one for one in group if one.job in held])
    return rows


def _remember(group: Sequence[Settlement]) -> Steps[None]:
    """Write down what jobs sleep and wait for, and forget what they remember of an ended round."""
    if paused := [one for one in group if one.pauses]:
        pauses = [
            (one.job, pause.kind, pause.name, pause.signal, one.delay, pause.seconds,
             pause.until and pause.until.timestamp())
            for one in paused for pause in one.pauses
        ]  # fmt: skip
        yield PAUSE(pauses=json_list(pauses))
        yield DELIVER(jobs=json_list([one.job for one in paused]))
    if forgetting := [one.job for one in group if one.remembers and one.move is Move.AGAIN]:
        yield MEMORY_DELETE(jobs=json_list(forgetting))


def _waiting(move: Move) -> Statement:
    if move is Move.AGAIN:
        return SETTLE_AGAIN
    if move in _UNSPENT:
        return SETTLE_WAIT
    message = f"a run cannot end with {move}"
    raise ValueError(message)


def _again(settlement: Settlement) -> list[Any]:
    at = None if settlement.at is None else settlement.at.timestamp()
    return [settlement.job, settlement.lease, settlement.delay, at]


def _another_run(settlement: Settlement) -> list[Any]:
    move, delay = settlement.move, settlement.delay
    state = State.SCHEDULED
    if move is Move.RETRY:
        state = State.RETRYABLE
    elif move is Move.RELEASE and delay <= 0:
        state = State.AVAILABLE
    ran = move is not Move.RELEASE
    return [
        settlement.job, settlement.lease, state, delay, _UNSPENT[move], settlement.error, ran,
    ]  # fmt: skip
