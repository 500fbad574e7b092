"""Handing jobs over: leased, handed over, and settled or given back.

Other writers would wait for a transaction that lasts as long as a target takes, heartbeats among
them, so there are two short ones. A job that is given back, or rescued, has its old place here: its
id. There is one relay of a queue at a time, since none leases anything while another one's session
holds jobs of the queue.

Known weakness: after a worker's death its session has to be rescued first, which takes as long as
for any job.
"""

from collections.abc import Sequence

from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.settlement import Settled, Settlement
from rota.model.states import Move
from rota.store.operation import Apart, Begin, Operation, Stepped, Steps, Then, operation
from rota.store.relaying import Hand, Relaying
from rota.store.sqlite.claim import SESSION_ALIVE, available, claim_in_steps
from rota.store.sqlite.sessions import lost
from rota.store.sqlite.settle import settle, settle_in_steps
from rota.store.sqlite.statements import sql

RELAY_HELD = sql("relay/relay_held")


def hand_over(session: SessionId, relaying: Relaying, hand: Hand) -> Operation[int]:
    """Hand over the next jobs of a relay; see `rota.store.protocol.Store.hand_over`."""
    return Stepped("hand_over", _hand_over(session, relaying, hand), Begin.NOTHING)


def _hand_over(session: SessionId, relaying: Relaying, hand: Hand) -> Steps[int]:
    if not (yield from available([relaying.queue], [relaying.task])):
        return 0
    [(jobs,)] = yield Apart(_lease(session, relaying))
    if not jobs:
        return 0
    try:
        hand.prepare()
        yield from _check(session)
        settlements = hand(jobs)
    except BaseException:
        yield Apart(settle(session, [_back(job.id, job.lease) for job in jobs]))
        raise
    [(refused,)] = yield Apart(_settle(session, settlements))
    if refused:
        raise lost(session)
    return len(jobs)


@operation(Begin.HASTY)
def _lease(session: SessionId, relaying: Relaying) -> Steps[list[ClaimedJob]]:
    """Lease the next jobs, unless another relay is at work."""
    held = yield RELAY_HELD(queue=relaying.queue)
    if any(owner != session for owner, _, _ in held):
        return []
    # What an attempt of this relay has left behind, which could not give its jobs back.
    yield from settle_in_steps(session, [_back(job, lease) for _, job, lease in held])
    return (yield from claim_in_steps(session, [relaying.queue], relaying.limit, [relaying.task]))


@operation(Begin.DURABLE, then=Then.WAITERS)
def _settle(session: SessionId, settlements: Sequence[Settlement]) -> Steps[Settled]:
    """Settle on disk: a target knows the jobs of the last batch, and not those before."""
    return (yield from settle_in_steps(session, settlements))


def _check(session: SessionId) -> Steps[None]:
    if not (yield SESSION_ALIVE(session=session)):
        raise lost(session)


def _back(job: JobId, lease: LeaseId) -> Settlement:
    return Settlement(job, lease, Move.RELEASE)
