"""Draining: whether a worker that found no job has emptied its queues."""

from rota.database.database import Database
from rota.events import PausedLeft
from rota.model.job import JobFilter
from rota.model.patterns import meant
from rota.model.states import State


def left_over(database: Database, wanted: tuple[str, ...]) -> list[PausedLeft] | None:
    """What is left in paused queues, for which a worker of these would wait without end.

    `None` while other jobs of these queues wait, or run on any worker.
    """
    store = database.store
    known = database.run(store.queues())
    queues = meant(wanted, (queue.name for queue in known))
    paused = {queue.name for queue in known if queue.paused}
    awaited = [
        (queue, state)
        for queue in queues
        for state in State
        if not state.finished and (state is State.RUNNING or queue not in paused)
    ]
    for queue, state in awaited:
        if database.run(store.list_jobs(JobFilter(state=state, queue=queue, limit=1))):
            return None
    # A job that moved from one state to another between these looks was in none of them.
    # The counts are a single look.
    left: dict[str, int] = {}
    for record in database.run(store.queues()):
        for state, count in record.counts.items():
            if record.name not in queues or state.finished or not count:
                continue
            if (record.name, state) in awaited:
                return None
            left[record.name] = left.get(record.name, 0) + count
    return [PausedLeft(name, count) for name, count in sorted(left.items())]
