"""The other workers of the same queues and tasks, as the last sign of life told of them.

All workers look after the database, each in its turn: the more they are, the more rarely each of
them looks, so that together they look a few times in a `poll`. Their turns are spread by the
server's clock. Where a worker does not take its turn, since it hangs or is gone, a `poll` passes
between two looks. Where half of them have gone at once, as with one of two machines, a poll and a
half.

Known weakness: where most workers have gone at once, without a word, looks are as many times rarer,
until the others have noticed: a sign of life names no session that has been silent for 0.6 of its
timeout.
"""

from collections.abc import Iterable, Mapping, Sequence

from rota.model.job import Renewal, SessionId
from rota.model.patterns import is_pattern, meaning
from rota.worker.rhythm import Rhythm

TOGETHER = 2
"""Workers that look in one `poll`, where each looks less often than that."""

SELDOM = 16
"""After so many `poll` each worker looks, however many they are."""

GOLDEN = 0.618034
"""What mixes the turns: of sessions that were opened one after the other, as those of one machine
are, none have turns in a row, which would all be missing together.
"""

JUST = 0.05
"""The share of the time between two turns within which a worker has just had its turn."""

STAND_BY = 2
"""Workers of each queue that look a moment after a notification, if they hear it."""


class Peers:
    """The workers of the same queues and tasks, this one among them.

    The session's thread writes it, others read it.

    `rhythm` says whether those that look silent are.
    """

    def __init__(self, queues: Iterable[str], timeout: float) -> None:
        self.rhythm = Rhythm(timeout)
        self._patterns = [*filter(is_pattern, queues)]
        self._heard: tuple[SessionId | None, Mapping[str, Sequence[SessionId]]] = None, {}

    def hear(self, session: SessionId, renewal: Renewal) -> bool:
        """Note which sessions serve each queue; whether these are fewer than before."""
        self.rhythm.look(renewal.clock)
        before = self._turn()[1]
        self._heard = session, renewal.serving
        return self._turn()[1] < before

    def stands_by(self, queue: str) -> bool:
        """Whether this worker looks after a notification that another one answers."""
        session, serving = self._heard
        sessions = serving.get(queue, ())
        if not sessions and (pattern := meaning(self._patterns, queue)) is not None:
            sessions = serving.get(pattern, ())
        return session in sessions[:STAND_BY]

    @property
    def share(self) -> float:
        """How many times more rarely each of them looks than a worker that is alone."""
        return min(max(1.0, self._turn()[1] / TOGETHER), SELDOM)

    def until_turn(self, poll: float, clock: float) -> float:
        """In how many seconds it is this worker's turn to look, if it has just looked at `clock`."""
        place, count = self._turn()
        period = poll * self.share
        wait = (_turn_of(place, count) / count * period - clock) % period
        return wait if wait > JUST * period else wait + period

    def _turn(self) -> tuple[int, int]:
        """This worker's place among those of the queue with the fewest, and how many these are."""
        session, serving = self._heard
        mine = [sessions for sessions in serving.values() if session in sessions]
        if session is None or not mine:
            return 0, 1
        fewest = min(mine, key=len)
        return fewest.index(session), len(fewest)


def _turn_of(place: int, count: int) -> int:
    """Which turn this place has, of as many."""
    return sorted(range(count), key=lambda other: other * GOLDEN % 1).index(place)
