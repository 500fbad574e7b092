"""What is written for settlements that the fence has let through, by the statements that write it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rota.model.job import JobId
from rota.model.settlement import Completions, Settlement
from rota.model.states import Move, State
from rota.store.operation import Steps
from rota.store.postgres.statements import sql

SETTLE_COMPLETE = sql("settle/settle_complete")
SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_AGAIN = sql("settle/settle_again")
APPEND_AGAIN = sql("settle/append_again")
PASS_ON_LANES = sql("settle/pass_on_lanes")
PASS_ON = sql("settle/pass_on")
WAKE_QUEUE = sql("wake/wake_queue")
KEY_WAIT = sql("settle/key_wait")
KEY_END = sql("settle/key_end")

FINISHED = {
    Move.COMPLETE: State.COMPLETED,
    Move.DISCARD: State.DISCARDED,
    Move.CANCEL: State.CANCELLED,
}
WAITING = {
    Move.RETRY: State.RETRYABLE,
    Move.SNOOZE: State.SCHEDULED,
    Move.AGAIN: State.SCHEDULED,
    Move.RELEASE: State.SCHEDULED,
}


def write(settlements: Iterable[Settlement], completions: Iterable[Completions]) -> Steps[None]:
    """Write what has been accepted."""
    kinds = _Kinds(settlements, completions)
    if kinds.unique:
        yield from _keys_wait(kinds.unique)
    for keep, jobs in kinds.plain.items():
        if keep:
            firsts, lasts = stretches(jobs)
            yield SETTLE_COMPLETE(firsts=array(firsts), lasts=array(lasts), keep=keep)
    if finished := kinds.finished:
        yield SETTLE_FINISH(
            jobs=[settlement.job for settlement in finished],
            states=[FINISHED[settlement.move].value for settlement in finished],
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
            states=[WAITING[settlement.move].value for settlement in waiting],
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
    ended = [settlement for settlement in kinds.unique if settlement.move in FINISHED]
    yield from keys_end([(settlement.job, settlement.unique_key or "") for settlement in ended])


class _Kinds:
    """Settlements sorted by the statement that writes them."""

    def __init__(
        self, settlements: Iterable[Settlement], completions: Iterable[Completions]
    ) -> None:
        self.plain: dict[float | None, list[JobId]] = {}
        self.finished: list[Settlement] = []
        self.again: list[JobId] = []
        self.unknown: list[JobId] = []
        self.waiting: list[Settlement] = []
        self.rounds: list[Settlement] = []
        self.unique: list[Settlement] = []
        for _, keep, jobs in completions:
            self.plain.setdefault(keep, []).extend(jobs)
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


def _keys_wait(settlements: Sequence[Settlement]) -> Steps[None]:
    """Note the new entries of unique jobs that wait again."""
    back = [settlement for settlement in settlements if settlement.move not in FINISHED]
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
    return WAITING[settlement.move]


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


def array(jobs: Sequence[JobId]) -> str:
    """These ids as PostgreSQL writes an array."""
    # The drivers would spend longer on the list than the server on the statement. (The statements
    # say ::text::int8[], since asyncpg insists on a parameter's type.)
    return f"{{{','.join(map(str, jobs))}}}"


def stretches(jobs: Sequence[JobId]) -> tuple[list[JobId], list[JobId]]:
    """The jobs as ranges of ids that follow one another: the first of each range, and the last."""
    jobs = sorted(set(jobs))
    # Nearly always there is no gap.
    if jobs[-1] - jobs[0] < len(jobs):
        return [jobs[0]], [jobs[-1]]
    gaps = [pair for pair in pairwise(jobs) if pair[1] != pair[0] + 1]
    return [jobs[0], *(after for _, after in gaps)], [*(before for before, _ in gaps), jobs[-1]]
