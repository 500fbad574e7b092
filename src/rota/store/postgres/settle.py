"""Settling: writing what came of the jobs a session holds, and only of those.

The fence is the lease's row. `settle_fence.sql` takes the settled jobs out of their leases where
the session still holds them; a rescue deletes these rows. The first to lock the row wins, and the
other finds nothing. What the fence refused is not written anywhere, and its successor is not enqueued.

Known weakness: two settlers whose jobs and successors have unique keys in common can wait for each other;
PostgreSQL ends one of them, which writes its batch again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rota.errors import TransactionEnded
from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Settled, Settlement
from rota.model.states import Move, State
from rota.store.following import following
from rota.store.operation import (
    Apart,
    Begin,
    Operation,
    Query,
    Rows,
    Statement,
    Stepped,
    Steps,
    operation,
    surroundings,
)
from rota.store.postgres.enqueue import append
from rota.store.postgres.listener import IDS, tell_ended, tell_if_waited
from rota.store.postgres.statements import sql

SETTLE_AT_ONCE = sql("settle/settle_at_once")
SETTLE_WHOLE = sql("settle/settle_whole")
SETTLE_GONE = sql("settle/settle_gone")
SETTLE_GONE_AT_ONCE = sql("settle/settle_gone_at_once")
TAGGED = sql("settle/tagged")
# In the wrong transaction it finds nothing: outside of any, what it deletes would be gone at once.
SETTLE_TAGGED = Statement(
    "settle_tagged",
    SETTLE_WHOLE.text.replace("WHERE ", "WHERE current_setting('rota.tag', true) = 'here' AND ", 1),
)
SETTLE_FENCE = sql("settle/settle_fence")
SETTLE_COMPLETE = sql("settle/settle_complete")
SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_AGAIN = sql("settle/settle_again")
APPEND_AGAIN = sql("settle/append_again")
PASS_ON_LANES = sql("settle/pass_on_lanes")
PASS_ON = sql("settle/pass_on")
WAKE_QUEUE = sql("wake/wake_queue")
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
"""Seconds for which a job stays readable that was cancelled instead of coming back."""


def settle(session: SessionId, settlements: Sequence[Settlement]) -> Operation[Settled]:
    """Write settlements; see `rota.store.protocol.Store.settle`."""
    if not settlements or (keep := _everyday(settlements)) is None:
        return settle_in_steps(session, settlements)
    return Stepped("settle", _settle(session, settlements, keep), Begin.NOTHING)


def _everyday(settlements: Sequence[Settlement]) -> float | None:
    """The retention (0: none), where these are jobs of one lease that have completed, all in the same way."""
    first = settlements[0]
    everyday = len(settlements) <= IDS and all(
        settlement.lease == first.lease
        and settlement.move is Move.COMPLETE
        and settlement.result is None
        and settlement.unique_key is None
        and settlement.successor is None
        and settlement.keep == first.keep
        for settlement in settlements
    )
    return (first.keep or 0.0) if everyday else None


def _settle(session: SessionId, settlements: Sequence[Settlement], keep: float) -> Steps[Settled]:
    """In one statement if possible; not behind a pooler, where it would be planned without Rota's settings."""
    here = yield from surroundings()
    if here.inside:
        return (yield from settle_in_steps(session, settlements).steps)
    if here.tuned and (yield _at_once(session, settlements, keep)):
        return Settled()
    [(settled,)] = yield Apart(settle_in_steps(session, settlements))
    answer: Settled = settled
    return answer


def _at_once(session: SessionId, settlements: Sequence[Settlement], keep: float) -> Query:
    jobs = sorted(settlement.job for settlement in settlements)
    lease = {"lease": settlements[0].lease, "session": session, "jobs": array(jobs)}
    if not keep:
        return SETTLE_GONE_AT_ONCE(**lease)
    firsts, lasts = stretches(jobs)
    return SETTLE_AT_ONCE(**lease, firsts=array(firsts), lasts=array(lasts), keep=keep)


@operation(Begin.DURABLE)
def settle_in_steps(
    session: SessionId, settlements: Sequence[Settlement], *, tagged: bool = False
) -> Steps[Settled]:
    """Write settlements of any kind, in whatever transaction there is.

    Raises:
        TransactionEnded: The transaction should be `tagged`, and is not.
    """
    settle_whole = SETTLE_TAGGED if tagged else SETTLE_WHOLE
    by_lease: dict[LeaseId, list[Settlement]] = {}
    for settlement in settlements:
        by_lease.setdefault(settlement.lease, []).append(settlement)
    accepted: list[Settlement] = []
    partly: list[Settlement] = []
    lanes: dict[LeaseId, int] = {}
    waited = False
    # By the leases' ids, as a rescue locks them: the two cannot deadlock. Hence, after the first
    # lease that is not settled whole, the fence takes all the others.
    for lease, group in sorted(by_lease.items()):
        whole: Rows = ()
        if not partly:
            jobs = sorted(settlement.job for settlement in group)
            whole = yield settle_whole(lease=lease, session=session, jobs=array(jobs))
            lanes.update(row[:2] for row in whole)
            waited = waited or any(row[2] for row in whole)
            if tagged and not whole and not (yield TAGGED())[0][0]:
                raise TransactionEnded
        (accepted if whole else partly).extend(group)
    refused: list[JobId] = []
    unwanted: set[JobId] = set()
    if partly:
        partly, refused, unwanted, asked = yield from _fence(session, partly, lanes)
        waited = waited or asked
    accepted += partly
    yield from _write(accepted)
    if gone := Counter(_gone(accepted, lanes)):
        yield SETTLE_GONE(
            lanes=[lane for lane, _ in gone],
            states=[state for _, state in gone],
            counts=list(gone.values()),
        )
    if waited and (yield from surroundings()).notify:
        # In this transaction, so that no listener hears of what is rolled back.
        yield from tell_ended(
            settlement.job for settlement in accepted if settlement.move in _FINISHED
        )
    if unwanted:
        yield CANCEL_FORGET(jobs=list(unwanted))
    # Last, when the unique keys of the jobs that have ended are free.
    came = yield from following((settlement.successor for settlement in accepted), append)
    return Settled(refused, came)


def _gone(
    settlements: Iterable[Settlement], lanes: Mapping[LeaseId, int]
) -> Iterator[tuple[int, State]]:
    """The lanes and states of jobs that were completed or discarded, and leave nothing behind."""
    for settlement in settlements:
        move, keep = settlement.move, settlement.keep
        if (move is Move.COMPLETE and not keep) or (move is Move.DISCARD and keep == 0):
            yield lanes[settlement.lease], _FINISHED[move]


def _fence(
    session: SessionId, settlements: Sequence[Settlement], lanes: dict[LeaseId, int]
) -> Steps[tuple[list[Settlement], list[JobId], set[JobId], bool]]:
    leases = [settlement.lease for settlement in settlements]
    rows = yield SETTLE_FENCE(
        session=session,
        leases=leases,
        jobs=[settlement.job for settlement in settlements],
        distinct=list(set(leases)),
    )
    lanes.update(row[:2] for row in rows)
    strangers = {(lease, job) for lease, _, others, _, _ in rows for job in others}
    unwanted = {job for _, _, _, jobs, _ in rows for job in jobs}
    accepted = []
    refused = []
    seen: set[JobId] = set()
    for settlement in settlements:
        job, lease = settlement.job, settlement.lease
        if lease not in lanes or (lease, job) in strangers or job in seen:
            refused.append(job)
        else:
            seen.add(job)
            accepted.append(_cancel_instead(settlement) if job in unwanted else settlement)
    return accepted, refused, unwanted, any(row[-1] for row in rows)


def _cancel_instead(settlement: Settlement) -> Settlement:
    # A job that would come back, although a user asked to cancel it, is cancelled now.
    if settlement.move in _WAITING:
        return settlement._replace(move=Move.CANCEL, keep=CANCELLED_KEEP)
    return settlement


def give_back(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """Append jobs that have left their leases to the log again, unspent, in this order; which these are.

    Those that users asked to cancel are cancelled instead.
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
    back = [job for job in jobs if job not in unwanted]
    yield APPEND_AGAIN(jobs=back)
    return back


def array(jobs: Sequence[JobId]) -> str:
    """These ids as PostgreSQL writes an array."""
    # The drivers would spend longer on the list than the server on the statement. (The statements
    # say ::text::int8[], since asyncpg insists on a parameter's type.)
    return f"{{{','.join(map(str, jobs))}}}"


class _Kinds:
    """Settlements sorted by the statement that writes them."""

    def __init__(self, settlements: Sequence[Settlement]) -> None:
        self.plain: dict[float | None, list[JobId]] = {}
        self.finished: list[Settlement] = []
        self.again: list[JobId] = []
        self.unknown: list[JobId] = []
        self.waiting: list[Settlement] = []
        self.rounds: list[Settlement] = []
        self.unique: list[Settlement] = []
        for settlement in settlements:
            self._add(settlement)

    def _add(self, settlement: Settlement) -> None:
        keep = settlement.keep
        if settlement.unique_key is not None:
            self.unique.append(settlement)
        match settlement.move:
            case Move.COMPLETE if settlement.result is None:
                self.plain.setdefault(keep, []).append(settlement.job)
            case Move.DISCARD:
                # Without a retention the job stays for ever.
                if keep is None or keep > 0:
                    self.finished.append(settlement)
            case Move.COMPLETE | Move.CANCEL:
                if keep:
                    self.finished.append(settlement)
            case Move.RELEASE if settlement.unknown:
                self.unknown.append(settlement.job)
            case Move.RELEASE if settlement.delay <= 0:
                self.again.append(settlement.job)
            case Move.AGAIN:
                self.rounds.append(settlement)
            case _:
                self.waiting.append(settlement)


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
    if kinds.unique:
        yield from _keys_wait(kinds.unique)
    for keep, jobs in kinds.plain.items():
        if keep:
            firsts, lasts = stretches(jobs)
            yield SETTLE_COMPLETE(firsts=array(firsts), lasts=array(lasts), keep=keep)
    if finished := kinds.finished:
        yield SETTLE_FINISH(
            jobs=[settlement.job for settlement in finished],
            states=[_FINISHED[settlement.move].value for settlement in finished],
            keeps=[settlement.keep for settlement in finished],
            results=[settlement.result for settlement in finished],
            errors=[settlement.error for settlement in finished],
        )
    if again := kinds.again:
        yield APPEND_AGAIN(jobs=again)
    if unknown := kinds.unknown:
        yield PASS_ON_LANES(jobs=unknown)
        # A statement of its own: its snapshot has the lanes that another transaction was making.
        for (queue,) in (yield PASS_ON(jobs=unknown)):
            yield WAKE_QUEUE(wake=queue)
    if waiting := kinds.waiting:
        yield SETTLE_WAIT(
            jobs=[settlement.job for settlement in waiting],
            states=[_WAITING[settlement.move].value for settlement in waiting],
            delays=[settlement.delay for settlement in waiting],
            spents=[int(settlement.move is Move.RETRY) for settlement in waiting],
            rans=[settlement.move is not Move.RELEASE for settlement in waiting],
            errors=[settlement.error for settlement in waiting],
        )
    if rounds := kinds.rounds:
        yield SETTLE_AGAIN(
            jobs=[settlement.job for settlement in rounds],
            delays=[settlement.delay for settlement in rounds],
            ats=[settlement.at for settlement in rounds],
        )
    # Last, because the statements above look at which jobs still have their keys.
    ended = [settlement for settlement in kinds.unique if settlement.move in _FINISHED]
    yield from keys_end([(settlement.job, settlement.unique_key or "") for settlement in ended])


def _keys_wait(settlements: Sequence[Settlement]) -> Steps[None]:
    """Note the new entries of unique jobs that wait again."""
    back = [settlement for settlement in settlements if settlement.move not in _FINISHED]
    if back:
        yield KEY_WAIT(
            jobs=[settlement.job for settlement in back],
            keys=[settlement.unique_key for settlement in back],
            states=[_next_state(settlement).value for settlement in back],
            rounds=[int(settlement.move is Move.AGAIN) for settlement in back],
        )


def _next_state(settlement: Settlement) -> State:
    if settlement.move is Move.RELEASE and settlement.delay <= 0:
        return State.AVAILABLE
    return _WAITING[settlement.move]


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
