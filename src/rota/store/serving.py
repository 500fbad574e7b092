"""Which workers there are for a job: those that are alive and serve its queue."""

from collections.abc import Iterable

from rota.model.patterns import meaning
from rota.store.health import SessionFacts


def alive(session: SessionFacts) -> bool:
    """Whether a worker has given a sign of life in time."""
    return session.silent <= session.timeout


def serving(sessions: Iterable[SessionFacts], queue: str) -> list[SessionFacts]:
    """The living workers that take jobs from a queue."""
    return [one for one in sessions if alive(one) and meaning(one.queues, queue) is not None]
