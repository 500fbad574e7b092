"""Settling: writing what came of the jobs a session holds, and only of those.

The fence is the lease's row. `settle_fence.sql` takes the settled jobs out of their leases where
the session still holds them; a rescue deletes these rows. Whoever locks the row first wins, and the
other one finds nothing. What the fence refused is not written anywhere.
"""

from collections.abc import Sequence
from itertools import pairwise

from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Begin, Rows, Steps, operation, surroundings
from rota.store.postgres.ended import tell_ended, tell_if_waited
from rota.store.postgres.statements import sql

SETTLE_WHOLE = sql("settle/settle_whole")
SETTLE_FENCE = sql("settle/settle_fence")
SETTLE_COMPLETE = sql("settle/settle_complete")
SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_AGAIN = sql("settle/settle_again")
APPEND_AGAIN = sql("settle/append_again")
CANCEL_AMONG = sql("settle/cancel_among")
CANCEL_FORGET = sql("settle/cancel_forget")
KEY_WAIT = sql("settle/key_wait")
KEY_END = sql("settle/key_end")
KEY_OF = sql("settle/key_of")

_FINISHED = {
    Move.COMPLETE: State.COMPLETED,
    Move.DISCARD: State.DISCARDED,
    Move.CANCEL: State.CANCELLED,
}
_WAITING = {
    Move.RETRY: State.RETRYABLE,
    Move.SNOOZE: State.SCHEDULED,
    Move.AGAIN: State.SCHEDULED,
    Move.RELEASE: State.SCHEDULED,
}

CANCELLED_KEEP = 86400.0
"""Seconds that a job stays readable which was cancelled while it was on its way elsewhere."""


@operation(Begin.DURABLE)
def settle(session: SessionId, settlements: Sequence[Settlement]) -> Steps[list[JobId]]:
    """Write settlements; see `rota.store.protocol.Store.settle`."""
    by_lease: dict[LeaseId, list[Settlement]] = {}
    for one in settlements:
        by_lease.setdefault(one.lease, []).append(one)
    accepted: list[Settlement] = []
    partly: list[Settlement] = []
    waited = False
    # By the leases' ids, as a rescue locks them: the two cannot deadlock. Hence, after the first
    # lease that is not settled whole, the fence takes all the others.
    for lease, group in sorted(by_lease.items()):
        whole: Rows = ()
        if not partly:
            jobs = sorted(one.job for one in group)
            whole = yield SETTLE_WHOLE(lease=lease, session=session, jobs=array(jobs))
            waited = waited or any(row[1] for row in whole)
        (accepted if whole else partly).extend(group)
    refused: list[JobId] = []
    unwanted: set[JobId] = set()
    if partly:
        partly, refused, unwanted, asked = yield from _fence(session, partly)
        waited = waited or asked
    yield from _write([*accepted, *partly])
    if waited and (yield from surroundings()).notify:
        # In this transaction, so that nobody hears of what is rolled back.
        yield from tell_ended(one.job for one in (*accepted, *partly) if one.move in _FINISHED)
    if unwanted:
        yield CANCEL_FORGET(jobs=list(unwanted))
    return refused


def _fence(
    session: SessionId, settlements: Sequence[Settlement]
) -> Steps[tuple[list[Settlement], list[JobId], set[JobId], bool]]:
    leases = [one.lease for one in settlements]
    rows = yield SETTLE_FENCE(
        session=session,
        leases=leases,
        jobs=[one.job for one in settlements],
        distinct=list(set(leases)),
    )
    held = {lease for lease, _, _, _ in rows}
    strangers = {(lease, job) for lease, others, _, _ in rows for job in others}
    unwanted = {job for _, _, jobs, _ in rows for job in jobs}
    accepted = []
    refused = []
    seen: set[JobId] = set()
    for one in settlements:
        if one.lease not in held or (one.lease, one.job) in strangers or one.job in seen:
            refused.append(one.job)
        else:
            seen.add(one.job)
            accepted.append(_cancel_instead(one) if one.job in unwanted else one)
    return accepted, refused, unwanted, any(waited for _, _, _, waited in rows)


def _cancel_instead(one: Settlement) -> Settlement:
    # A job that would come back, although somebody wants it cancelled, is cancelled now.
    if one.move in _WAITING:
        return one._replace(move=Move.CANCEL, keep=CANCELLED_KEEP)
    return one


def give_back(jobs: Sequence[JobId]) -> Steps[None]:
    """Append jobs that have left their leases to the log again, unspent, in this order.

    Those that somebody wants cancelled are cancelled instead.
    """
    unwanted = {row[0] for row in (yield CANCEL_AMONG(jobs=list(jobs)))}
    if keys := (yield KEY_OF(jobs=list(jobs))):
        yield from keys_end([(job, key) for job, key in keys if job in unwanted])
        yield from keys_wait([(job, key) for job, key in keys if job not in unwanted])
    if unwanted:
        cancelled = [job for job in jobs if job in unwanted]
        yield SETTLE_FINISH(
            jobs=cancelled,
            states=[State.CANCELLED.value] * len(cancelled),
            keeps=[CANCELLED_KEEP] * len(cancelled),
            results=[None] * len(cancelled),
            errors=[None] * len(cancelled),
        )
        yield CANCEL_FORGET(jobs=cancelled)
        yield from tell_if_waited(cancelled)
    yield APPEND_AGAIN(jobs=[job for job in jobs if job not in unwanted])


def array(jobs: Sequence[JobId]) -> str:
    """These ids as PostgreSQL writes an array."""
    # The drivers would spend longer on the list than the server on the statement. (The statements
    # say ::text::int8[], since asyncpg insists on what a parameter is.)
    return f"{{{','.join(map(str, jobs))}}}"


class _Kinds:
    """Settlements sorted by the statement that writes them."""

    def __init__(self, settlements: Sequence[Settlement]) -> None:
        self.plain: dict[float | None, list[JobId]] = {}
        self.finished: list[Settlement] = []
        self.again: list[JobId] = []
        self.waiting: list[Settlement] = []
        self.rounds: list[Settlement] = []
        self.keyed: list[Settlement] = []
        for one in settlements:
            self._add(one)

    def _add(self, one: Settlement) -> None:
        if one.unique_key is not None:
            self.keyed.append(one)
        match one.move:
            case Move.COMPLETE if one.result is None:
                self.plain.setdefault(one.keep, []).append(one.job)
            case Move.DISCARD:
                # Without a retention it stays for ever.
                if one.keep is None or one.keep > 0:
                    self.finished.append(one)
            case Move.COMPLETE | Move.CANCEL:
                if one.keep:
                    self.finished.append(one)
            case Move.RELEASE if one.delay <= 0:
                self.again.append(one.job)
            case Move.AGAIN:
                self.rounds.append(one)
            case _:
                self.waiting.append(one)


def stretches(jobs: Sequence[JobId]) -> tuple[list[JobId], list[JobId]]:
    """The jobs as ranges of ids that follow one another: the first of each range, and the last."""
    jobs = sorted(set(jobs))
    # Nearly always there is no gap.
    if jobs[-1] - jobs[0] < len(jobs):
        return [jobs[0]], [jobs[-1]]
    gaps = [pair for pair in pairwise(jobs) if pair[1] != pair[0] + 1]
    return [jobs[0], *(after for _, after in gaps)], [*(before for before, _ in gaps), jobs[-1]]


def _write(settlements: Sequence[Settlement]) -> Steps[None]:
    kinds = _Kinds(settlements)
    if kinds.keyed:
        yield from _keys_wait(kinds.keyed)
    for keep, jobs in kinds.plain.items():
        if keep:
            firsts, lasts = stretches(jobs)
            yield SETTLE_COMPLETE(firsts=array(firsts), lasts=array(lasts), keep=keep)
    if finished := kinds.finished:
        yield SETTLE_FINISH(
            jobs=[one.job for one in finished],
            states=[_FINISHED[one.move].value for one in finished],
            keeps=[one.keep for one in finished],
            results=[one.result for one in finished],
            errors=[one.error for one in finished],
        )
    if again := kinds.again:
        yield APPEND_AGAIN(jobs=again)
    if waiting := kinds.waiting:
        yield SETTLE_WAIT(
            jobs=[one.job for one in waiting],
            states=[_WAITING[one.move].value for one in waiting],
            delays=[one.delay for one in waiting],
            spents=[int(one.move is Move.RETRY) for one in waiting],
            errors=[one.error for one in waiting],
        )
    if rounds := kinds.rounds:
        yield SETTLE_AGAIN(
            jobs=[one.job for one in rounds],
            delays=[one.delay for one in rounds],
            ats=[one.at for one in rounds],
        )
    # The statements above ask who still has his key.
    yield from keys_end(
        [(one.job, one.unique_key or "") for one in kinds.keyed if one.move in _FINISHED]
    )


def _keys_wait(settlements: Sequence[Settlement]) -> Steps[None]:
    """Note the new entries of unique jobs that wait again."""
    back = [one for one in settlements if one.move not in _FINISHED]
    if back:
        yield KEY_WAIT(
            jobs=[one.job for one in back],
            keys=[one.unique_key for one in back],
            states=[_place(one).value for one in back],
            rounds=[int(one.move is Move.AGAIN) for one in back],
        )


def _place(one: Settlement) -> State:
    if one.move is Move.RELEASE and one.delay <= 0:
        return State.AVAILABLE
    return _WAITING[one.move]


def keys_end(held: Sequence[tuple[JobId, str]]) -> Steps[None]:
    """Free the unique keys of these jobs, which have ended."""
    if held:
        yield KEY_END(jobs=[job for job, _ in held], keys=[key for _, key in held])


def keys_wait(held: Sequence[tuple[JobId, str]]) -> Steps[None]:
    """Note that these jobs with unique keys are available again."""
    if held:
        yield KEY_WAIT(
            jobs=[job for job, _ in held],
            keys=[key for _, key in held],
            states=[State.AVAILABLE.value] * len(held),
            rounds=[0] * len(held),
        )
