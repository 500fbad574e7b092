"""What is written for settlements that the fence has let through, by the statements that write it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.model.settlement import Completions, Settlement
from rota.model.states import Move, State
from rota.store.membership import PLACES, arrivals, given, listed
from rota.store.operation import Query, Steps
from rota.store.postgres.statements import sql

SETTLE_COMPLETE = sql("settle/settle_complete")
SETTLE_FINISH = sql("settle/settle_finish")
SETTLE_WAIT = sql("settle/settle_wait")
SETTLE_AGAIN = sql("settle/settle_again")
APPEND_AGAIN = sql("settle/append_again")
PAUSE = sql("memory/pause")
ROUND = sql("memory/round")
REPLACED = sql("memory/replaced")
PASS_ON_LANES = sql("settle/pass_on_lanes")
PASS_ON = sql("settle/pass_on")
WAKE_QUEUE = sql("wake/wake_queue")
KEY_WAIT = sql("settle/key_wait")
KEY_END = sql("settle/key_end")
ARRIVE = sql("flows/arrive")
KEEP_RESULTS = sql("flows/keep_results")

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
    if slept := [one.job for one in kinds.unique if one.remembers or one.pauses]:
        yield REPLACED(jobs=slept)
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
    yield from _wait(kinds.waiting)
    yield from _again(kinds.rounds)
    # Last, because the statements above look at which jobs still have their keys.
    ended = [settlement for settlement in kinds.unique if settlement.move in FINISHED]
    yield from keys_end([(settlement.job, settlement.unique_key or "") for settlement in ended])


def arrive(settlements: Sequence[Settlement], completions: Sequence[Completions]) -> Steps[None]:
    """Say to the nodes of flows which of their jobs have ended; nothing for jobs of no node."""
    if (came := arrivals(settlements, completions)) is not None:
        yield ARRIVE(**came._asdict())
        if (results := given(settlements)) is not None:
            yield KEEP_RESULTS(**results._asdict())


def came_back(ends: Iterable[tuple[str, str | int]]) -> Steps[None]:
    """Take back what was said by `died` of jobs that are retried by hand."""
    yield from died(ends, -1)


def died(ends: Iterable[tuple[str, str | int]], count: int = 1) -> Steps[None]:
    """Tell nodes that jobs ended in a state; nodes are given as numbers or as headers have them."""
    counts: dict[NodeId, list[int]] = {}
    for state, node in ends:
        counts.setdefault(NodeId(int(node)), [0, 0, 0])[PLACES[State(state)]] += count
    if counts:
        yield ARRIVE(**listed(counts)._asdict())


def cancelled_by_hand(nodes: Iterable[str | None]) -> Steps[None]:
    """`died` for jobs that were cancelled or deleted; `None` for those of no node."""
    yield from died((State.CANCELLED, node) for node in nodes if node is not None)


def _wait(settlements: Sequence[Settlement]) -> Steps[None]:
    """Let jobs wait for their next run, and write down for what they sleep."""
    if not settlements:
        return
    yield SETTLE_WAIT(
        jobs=[settlement.job for settlement in settlements],
        states=[WAITING[settlement.move].value for settlement in settlements],
        delays=[settlement.delay for settlement in settlements],
        spents=[int(settlement.move is Move.RETRY) for settlement in settlements],
        rans=[settlement.move is not Move.RELEASE for settlement in settlements],
        errors=[settlement.error for settlement in settlements],
    )
    if paused := [settlement for settlement in settlements if settlement.pauses]:
        yield _pauses(paused)


def _again(settlements: Sequence[Settlement]) -> Steps[None]:
    """Let jobs wait for their next round, without the memory of this one."""
    if not settlements:
        return
    yield SETTLE_AGAIN(
        jobs=[settlement.job for settlement in settlements],
        delays=[settlement.delay for settlement in settlements],
        ats=[settlement.at for settlement in settlements],
    )
    if forgetting := [settlement.job for settlement in settlements if settlement.remembers]:
        yield ROUND(jobs=forgetting)


def _pauses(settlements: Sequence[Settlement]) -> Query:
    """Append for what these jobs sleep and wait from now on."""
    pauses = [(settlement, pause) for settlement in settlements for pause in settlement.pauses]
    return PAUSE(
        jobs=[settlement.job for settlement, _ in pauses],
        delays=[settlement.delay for settlement, _ in pauses],
        kinds=[pause.kind.value for _, pause in pauses],
        names=[pause.name for _, pause in pauses],
        refs=[pause.signal for _, pause in pauses],
        lasting=[pause.seconds for _, pause in pauses],
        untils=[pause.until for _, pause in pauses],
    )


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
        for _, keep, jobs, _ in completions:
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


def array(ids: Sequence[int]) -> str:
    """These ids as PostgreSQL writes an array."""
    # The drivers would spend longer on the list than the server on the statement. (The statements
    # say ::text::int8[], since asyncpg insists on a parameter's type.)
    return f"{{{','.join(map(str, ids))}}}"


def stretches(jobs: Sequence[JobId]) -> tuple[list[JobId], list[JobId]]:
    """The jobs as ranges of ids that follow one another: the first of each range, and the last."""
    jobs = sorted(set(jobs))
    # Nearly always there is no gap.
    if jobs[-1] - jobs[0] < len(jobs):
        return [jobs[0]], [jobs[-1]]
    gaps = [pair for pair in pairwise(jobs) if pair[1] != pair[0] + 1]
    return [jobs[0], *(after for _, after in gaps)], [*(before for before, _ in gaps), jobs[-1]]
