"""Handing jobs over: claimed, handed over and settled in one transaction.

The claim's lock on the lane is held until the commit. So there is one relay of a lane at a time,
others pass it by, and a server that ends the transaction of a relay that is gone, frozen or cut off
has put all jobs back where they were.

Known weakness: while jobs are handed over, who cancels one of them waits for that lock.
"""

from rota.model.job import SessionId
from rota.store.operation import Apart, Begin, Operation, Stepped, Steps, inline, operation
from rota.store.postgres.claim import Claims, is_alive, probe
from rota.store.postgres.claim_round import Part
from rota.store.postgres.sessions import lost
from rota.store.postgres.settle import settle_in_steps
from rota.store.postgres.statements import sql
from rota.store.relaying import Hand, Relaying

PATIENCE = sql("relay/relay_patience")

MARGIN = 5.0
"""Seconds for which the transaction may be idle beyond those that handing over may take."""


class Relays:
    """Hands jobs over; its claims remember lanes apart from those of the claimer."""

    def __init__(self) -> None:
        self._claims = Claims()

    def hand_over(self, session: SessionId, relaying: Relaying, hand: Hand) -> Operation[int]:
        """Hand over the next jobs of a relay; see `rota.store.protocol.Store.hand_over`."""
        return Stepped("hand_over", self._hand_over(session, relaying, hand), Begin.NOTHING)

    def _hand_over(self, session: SessionId, relaying: Relaying, hand: Hand) -> Steps[int]:
        [(parts,)] = yield Apart(probe([relaying.queue], [relaying.task]))
        for part in parts:
            if part.ready:
                [(count,)] = yield Apart(_from_part(self._claims, session, relaying, part, hand))
                if count:
                    given: int = count
                    return given
        return 0


@operation(Begin.DURABLE)
def _from_part(
    claims: Claims, session: SessionId, relaying: Relaying, part: Part, hand: Hand
) -> Steps[int]:
    """Hand over what is in one part, in the one transaction."""
    milliseconds = round((relaying.seconds + MARGIN) * 1000)
    yield PATIENCE(milliseconds=str(milliseconds))
    taking = claims.take_part(session, part, relaying.limit, [relaying.task])
    jobs = yield from inline(taking)
    if not jobs:
        yield from _check(session)
        return 0
    hand.prepare()
    # Where the server has ended the transaction meanwhile, this fails.
    yield from _check(session)
    settlements = hand(jobs)
    if (yield from settle_in_steps(session, settlements).steps):
        raise lost(session)
    return len(jobs)


def _check(session: SessionId) -> Steps[None]:
    if not (yield from is_alive(session).steps):
        raise lost(session)
