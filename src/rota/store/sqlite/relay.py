"""Handing jobs over: claimed, handed over and settled in one transaction.

A file has one writer at a time, so there is one relay at a time, and the jobs of one that was killed have not moved.

Known weakness: while jobs are handed over, all others wait who write to the file.
"""

from rota.model.job import SessionId
from rota.store.operation import Apart, Begin, Operation, Stepped, Steps, Then, operation
from rota.store.relaying import Hand, Relaying
from rota.store.sqlite.claim import available, claim_in_steps
from rota.store.sqlite.sessions import lost
from rota.store.sqlite.settle import settle_in_steps


def hand_over(session: SessionId, relaying: Relaying, hand: Hand) -> Operation[int]:
    """Hand over the next jobs of a relay; see `rota.store.protocol.Store.hand_over`."""
    return Stepped("hand_over", _hand_over(session, relaying, hand), Begin.NOTHING)


def _hand_over(session: SessionId, relaying: Relaying, hand: Hand) -> Steps[int]:
    if not (yield from available([relaying.queue], [relaying.task])):
        return 0
    [(count,)] = yield Apart(_in_transaction(session, relaying, hand))
    given: int = count
    return given


@operation(Begin.DURABLE, then=Then.WAITERS)
def _in_transaction(session: SessionId, relaying: Relaying, hand: Hand) -> Steps[int]:
    jobs = yield from claim_in_steps(session, [relaying.queue], relaying.limit, [relaying.task])
    if not jobs:
        return 0
    hand.prepare()
    settlements = hand(jobs)
    if (yield from settle_in_steps(session, settlements)):
        raise lost(session)
    return len(jobs)
