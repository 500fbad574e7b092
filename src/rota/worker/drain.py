"""Draining: whether a worker that found no job has emptied its queues."""

from rota.database.database import Database
from rota.events import PausedLeft
from rota.model.patterns import meant
from rota.model.states import State


def left_over(database: Database, wanted: tuple[str, ...]) -> list[PausedLeft] | None:
    """What is left in paused queues, for which a worker of these would wait without end.

    `None` while other jobs of these queues wait, or run on any worker. The counts are a single look: a job that
    moves from one state to another while they are read is in one of the two.
    """
    known = database.run(database.store.queues())
    queues = frozenset(meant(wanted, (queue.name for queue in known)))
    paused: list[PausedLeft] = []
    for queue in known:
        if queue.name not in queues:
            continue
        left = {state: jobs for state, jobs in queue.counts.items() if jobs and not state.finished}
        if left and (not queue.paused or State.RUNNING in left):
            return None
        if left:
            paused.append(PausedLeft(queue.name, sum(left.values())))
    return sorted(paused, key=lambda one: one.queue)
