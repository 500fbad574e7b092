"""Draining: whether a worker that found no job has emptied its queues.

Known weakness: jobs that wait for others of their flow are waited for, also where those others are
left.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Container, Sequence

from rota.config import WorkerConfig
from rota.database.database import Database
from rota.errors import StoreError
from rota.events import PausedLeft, UnknownLeft
from rota.model.job import QueueRecord
from rota.model.patterns import meant
from rota.model.states import State
from rota.store.serving import serving
from rota.worker.apps import Apps

RECENTLY = 3
"""In so many `poll`s each of several databases must be found empty, before a look at all of them."""

ROUNDS = 2
"""A job may have moved on to a database that was looked at before it: so often all are looked at."""


Left = list[tuple[Apps, PausedLeft | UnknownLeft]]
"""What is left that no worker may take or knows, and of which database."""


class Draining:
    """Ends a worker once all its databases are empty.

    Args:
        configs: How it behaves on each database; names the queues.
        databases: The apps of each.
        done: Called then, with what is left; perhaps by several of them.
    """

    def __init__(
        self,
        configs: Sequence[WorkerConfig],
        databases: Sequence[Apps],
        done: Callable[[Left], None],
    ) -> None:
        self._every = [*zip(databases, configs, strict=True)]
        self._recently = RECENTLY * configs[0].poll
        self._done = done
        self._empty = dict.fromkeys(databases, -math.inf)

    def look(self, apps: Apps) -> None:
        """No job is left here of this database: stop, unless others wait or run somewhere.

        Called by its claimer.
        """
        mine = [(apps, config) for each, config in self._every if each is apps]
        if (left := _left_over(mine)) is None:
            return
        if len(self._every) > 1:
            self._empty[apps] = time.monotonic()
            # A database that is away has not been found empty, and must keep no claimer waiting.
            if min(self._empty.values()) < time.monotonic() - self._recently:
                return
            for _ in range(ROUNDS):
                left = _left_over(self._every)
                if left is None:
                    return
        self._done(left)


def _left_over(
    databases: Sequence[tuple[Apps, WorkerConfig]],
) -> Left | None:
    """What is left, as `left_over` says of each database; `None` while other jobs wait or run."""
    left: Left = []
    for apps, config in databases:
        try:
            found = left_over(apps.first.database, config.queues, apps.tasks)
        except StoreError:
            if len(databases) == 1:
                raise
            return None
        if found is None:
            return None
        left += [(apps, one) for one in found]
    return left


def left_over(
    database: Database, wanted: tuple[str, ...], tasks: Container[str]
) -> list[PausedLeft | UnknownLeft] | None:
    """What is left in paused queues, and of tasks no worker knows: a worker would await it forever.

    `None` while other jobs of these queues wait, or run on any worker. The counts are a single
    look: a job that moves from one state to another while they are read is in one of the two.

    Args:
        database: Where to look.
        wanted: The worker's queues, or patterns for them.
        tasks: Those that the worker knows.
    """
    known = database.run(database.store.queues())
    queues = frozenset(meant(wanted, (queue.name for queue in known)))
    left: list[PausedLeft | UnknownLeft] = []
    open_: list[QueueRecord] = []
    for queue in known:
        if queue.name not in queues:
            continue
        counts = {
            state: jobs for state, jobs in queue.counts.items() if jobs and not state.finished
        }
        if State.RUNNING in counts:
            return None
        if counts and queue.paused:
            left.append(PausedLeft(queue.name, sum(counts.values())))
        elif counts.keys() == {State.AVAILABLE}:
            open_.append(queue)
        elif counts:
            return None
    if open_:
        unknown = _unknown(database, open_, tasks)
        if unknown is None:
            return None
        left += unknown
    return sorted(left, key=lambda one: one.queue)


def _unknown(
    database: Database, queues: Sequence[QueueRecord], tasks: Container[str]
) -> list[UnknownLeft] | None:
    """What is available in these queues for tasks that no worker knows; `None` if there is more."""
    names = {queue.name for queue in queues}
    workers = database.run(database.store.workers())
    unknown = [
        UnknownLeft(facts.queue, facts.task, facts.jobs)
        for facts in database.run(database.store.passed_on())
        if facts.queue in names
        and facts.task not in tasks
        and not any(worker.id in facts.knowing for worker in serving(workers, facts.queue))
    ]
    jobs = Counter[str]()
    for left in unknown:
        jobs[left.queue] += left.count
    if jobs != {queue.name: queue.counts[State.AVAILABLE] for queue in queues}:
        return None
    # These are several looks. They fit together if no job has come or moved in the meantime.
    again = [queue for queue in database.run(database.store.queues()) if queue.name in names]
    return unknown if again == [*queues] else None
