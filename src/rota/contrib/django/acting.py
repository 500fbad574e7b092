"""What the admin does to jobs, by their ids."""

from collections.abc import Sequence

from rota.contrib.django.app import rota
from rota.model.job import JobId
from rota.model.states import State


def retry(jobs: Sequence[int]) -> int:
    """Make finished and waiting jobs available now, with all their attempts; how many there were."""
    database = rota.database
    return len(database.run(database.store.retry([JobId(job) for job in jobs])))


def cancel(jobs: Sequence[int]) -> int:
    """Cancel waiting jobs, and ask running ones to stop; how many are not finished otherwise."""
    database, keep = rota.database, rota.queues.cancelled()
    states = database.run(database.store.cancel([JobId(job) for job in jobs], keep))
    return sum(state in {State.CANCELLED, State.RUNNING} for state in states.values())


def discard(jobs: Sequence[int]) -> int:
    """Delete jobs that are not running; how many there were."""
    database = rota.database
    return len(database.run(database.store.delete([JobId(job) for job in jobs])))
