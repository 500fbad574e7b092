"""Settling: writing what came of the jobs a session holds, and only of those.

The fence is the lease's row. `settle_fence.sql` takes the settled jobs out of their leases where
the session still holds them; a rescue deletes these rows. The first to lock the row wins, and the
other finds nothing. What the fence refused is not written anywhere, and its successor is not
enqueued.

Known weakness: two settlers whose jobs and successors have unique keys in common can wait for each
other; PostgreSQL ends one of them, which writes its batch again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rota.errors import TransactionEnded
from rota.model.headers import NodeId
from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Completions, Settled, Settlement, separate, together
from rota.model.states import Move, State
from rota.store import flow_making
from rota.store.following import following
from rota.store.membership import arrivals
from rota.store.operation import (
    Apart,
    Begin,
    Operation,
    Query,
    Rows,
    Statement,
    Stepped,
    Steps,
    Together,
    operation,
    surroundings,
)
from rota.store.postgres.enqueue import append
from rota.store.postgres.listener import parts_of, tell_ended, tell_if_waited
from rota.store.postgres.settle_write import (
    APPEND_AGAIN,
    FINISHED,
    SETTLE_FINISH,
    WAITING,
    array,
    arrive,
    cancelled_by_hand,
    keys_end,
    keys_wait,
    stretches,
    write,
)
from rota.store.postgres.statements import sql

SETTLE_AT_ONCE = sql("settle/settle_at_once")
SETTLE_WHOLE = sql("settle/settle_whole")
SETTLE_GONE = sql("settle/settle_gone")
SETTLE_GONE_AT_ONCE = sql("settle/settle_gone_at_once")
# For jobs of one node of a flow: with what arrives there.
ARRIVED = """, arrived AS (
    INSERT INTO rota.flow_arrival (node, completed)
    SELECT %(node)s::int8, cardinality(%(jobs)s::text::int8[]) FROM freed
    WHERE EXISTS (SELECT FROM rota.flow_node WHERE flow_node.id = %(node)s::int8)
)
SELECT CASE WHEN waited"""
MEMBERS_AT_ONCE, MEMBERS_GONE_AT_ONCE = (
    Statement(f"{whole.name}_members", whole.text.replace("\nSELECT CASE WHEN waited", ARRIVED))
    for whole in (SETTLE_AT_ONCE, SETTLE_GONE_AT_ONCE)
)
TAGGED = sql("settle/tagged")
# In the wrong transaction it finds nothing: outside of any, what it deletes would be gone at once.
SETTLE_TAGGED = Statement(
    "settle_tagged",
    SETTLE_WHOLE.text.replace("WHERE ", "WHERE current_setting('rota.tag', true) = 'here' AND ", 1),
)
SETTLE_FENCE = sql("settle/settle_fence")
CANCEL_AMONG = sql("settle/cancel_among")
CANCEL_FORGET = sql("settle/cancel_forget")
KEY_OF = sql("settle/key_of")
NODE_OF = sql("flows/node_of")

CANCELLED_KEEP = 86400.0
"""Seconds for which a job stays readable that was cancelled instead of coming back."""


def settle(
    session: SessionId,
    settlements: Sequence[Settlement],
    completions: Sequence[Completions] = (),
) -> Operation[Settled]:
    """Write settlements; see `rota.store.protocol.Store.settle`."""
    others, alike = together(settlements, completions)
    if others or len(alike) != 1:
        return settle_in_steps(session, others, completions=alike)
    return Stepped("settle", _settle(session, alike[0]), Begin.NOTHING)


def _settle(session: SessionId, completed: Completions) -> Steps[Settled]:
    """The everyday case, jobs of one lease that have completed alike: in one statement if possible.

    Not behind a pooler, where it would be planned without Rota's settings.
    """
    here = yield from surroundings()
    if here.tuned and not here.inside:
        query = _at_once(session, completed)
        settled: Settled | None = None
        if completed.node is not None and len(completed.jobs) == 1:
            [(settled,)] = yield Apart(_link(query, completed.node))
        elif (yield query):
            settled = Settled()
        if settled is not None:
            return settled
    return (yield from _apart(session, completed, inside=here.inside))


def _link(query: Query, node: NodeId) -> Operation[Settled | None]:
    """Settle the job of a node; if it is a link of a chain, what follows is released with it."""
    from rota.store.postgres.links import decided, links  # here: few processes need its statements

    def read(found: Sequence[Rows]) -> Settled | None:
        settled, rows = found
        return Settled(decided=decided(rows)) if settled else None

    return Together("settle_link", (query, links([node])), read, lasting=True)


def _apart(session: SessionId, completed: Completions, *, inside: bool) -> Steps[Settled]:
    steps = settle_in_steps(session, (), completions=[completed])
    if inside:
        return (yield from steps.steps)
    [(settled,)] = yield Apart(steps)
    answer: Settled = settled
    return answer


def _at_once(session: SessionId, completed: Completions) -> Query:
    jobs = sorted(completed.jobs)
    texts = list(map(str, jobs))
    lease: dict[str, object] = {
        "lease": completed.lease,
        "session": session,
        "jobs": f"{{{','.join(texts)}}}",
        "parts": parts_of(texts),
    }
    gone, kept = SETTLE_GONE_AT_ONCE, SETTLE_AT_ONCE
    if completed.node is not None:
        lease["node"] = completed.node
        gone, kept = MEMBERS_GONE_AT_ONCE, MEMBERS_AT_ONCE
    if not completed.keep:
        return gone(**lease)
    firsts, lasts = stretches(jobs)
    return kept(**lease, firsts=array(firsts), lasts=array(lasts), keep=completed.keep)


@operation(Begin.DURABLE)
def settle_in_steps(
    session: SessionId,
    settlements: Sequence[Settlement],
    *,
    completions: Sequence[Completions] = (),
    tagged: bool = False,
) -> Steps[Settled]:
    """Write settlements of any kind, in whatever transaction there is.

    Raises:
        TransactionEnded: The transaction should be `tagged`, and is not.
    """
    settle_whole = SETTLE_TAGGED if tagged else SETTLE_WHOLE
    accepted: list[Settlement] = []
    alike: list[Completions] = []
    partly: list[Settlement] = []
    lanes: dict[LeaseId, int] = {}
    waited = False
    # After the first lease that is not settled whole, the fence takes all the others: see
    # `_by_lease`.
    for lease, others, completed_alike in _by_lease(settlements, completions):
        whole: Rows = ()
        if not partly:
            jobs = sorted(_jobs(others, completed_alike))
            whole = yield settle_whole(lease=lease, session=session, jobs=array(jobs))
            lanes.update(row[:2] for row in whole)
            waited = waited or any(row[2] for row in whole)
            if tagged and not whole and not (yield TAGGED())[0][0]:
                raise TransactionEnded
        if whole:
            accepted += others
            alike += completed_alike
        else:
            partly += [*others, *separate(completed_alike)]
    refused: list[JobId] = []
    unwanted: set[JobId] = set()
    if partly:
        partly, refused, unwanted, asked = yield from _fence(session, partly, lanes)
        waited = waited or asked
    accepted += partly
    yield from write(accepted, alike)
    yield from arrive(accepted, alike)
    if gone := _gone(accepted, alike, lanes):
        yield SETTLE_GONE(
            lanes=[lane for lane, _ in gone],
            states=[state for _, state in gone],
            counts=list(gone.values()),
        )
    if waited and (yield from surroundings()).notify:
        # In this transaction, so that no listener hears of what is rolled back.
        ended = [settlement for settlement in accepted if settlement.move in FINISHED]
        yield from tell_ended(_jobs(ended, alike))
    if unwanted:
        yield CANCEL_FORGET(jobs=list(unwanted))
    yield from _graft(accepted)
    # Last, when the unique keys of the jobs that have ended are free.
    came = yield from following((settlement.successor for settlement in accepted), append)
    decided = [] if tagged else (yield from _decide_links(accepted, alike))
    return Settled(refused, came, decided)


def _decide_links(
    settlements: Iterable[Settlement], completions: Iterable[Completions]
) -> Steps[list[NodeId]]:
    """Decide of nodes that one of these jobs alone can end, but not in a caller's transaction."""
    came = arrivals(settlements, completions)
    if came is None or (yield from surroundings()).inside:
        return []
    single = [node for node, *counts in zip(*came, strict=True) if counts == [1, 0, 0]]
    if not single:
        return []
    from rota.store.postgres.links import decide_links  # here: few processes need its statements

    return (yield from decide_links(single))


def _graft(settlements: Iterable[Settlement]) -> Steps[None]:
    """Add to flows what jobs that are completed have asked for."""
    grafts = [one.graft for one in settlements if one.graft and one.move is Move.COMPLETE]
    if grafts:
        from rota.store.postgres.flows import SITE  # here: few processes need its statements

        for graft in grafts:
            yield from flow_making.graft(SITE, graft)


def _by_lease(
    settlements: Iterable[Settlement], completions: Iterable[Completions]
) -> list[tuple[LeaseId, list[Settlement], list[Completions]]]:
    """These by the leases' ids, in whose order a rescue locks them: the two cannot deadlock."""
    leases: dict[LeaseId, tuple[list[Settlement], list[Completions]]] = {}
    for settlement in settlements:
        leases.setdefault(settlement.lease, ([], []))[0].append(settlement)
    for completed in completions:
        leases.setdefault(completed.lease, ([], []))[1].append(completed)
    return [(lease, *leases[lease]) for lease in sorted(leases)]


def _jobs(settlements: Iterable[Settlement], completions: Iterable[Completions]) -> Iterator[JobId]:
    for settlement in settlements:
        yield settlement.job
    for completed in completions:
        yield from completed.jobs


def _gone(
    settlements: Iterable[Settlement],
    completions: Iterable[Completions],
    lanes: Mapping[LeaseId, int],
) -> Counter[tuple[int, State]]:
    """How many jobs were completed or discarded and leave nothing behind, by lane and state."""
    gone: Counter[tuple[int, State]] = Counter()
    for completed in completions:
        if not completed.keep:
            gone[lanes[completed.lease], State.COMPLETED] += len(completed.jobs)
    for settlement in settlements:
        move, keep = settlement.move, settlement.keep
        if (move is Move.COMPLETE and not keep) or (move is Move.DISCARD and keep == 0):
            gone[lanes[settlement.lease], FINISHED[move]] += 1
    return gone


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
    if settlement.move in WAITING:
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
        yield from cancelled_by_hand(row[0] for row in (yield NODE_OF(jobs=cancelled)))
    back = [job for job in jobs if job not in unwanted]
    yield APPEND_AGAIN(jobs=back)
    return back
