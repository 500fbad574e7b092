"""Draining: whether a worker that found no job has emptied its queues."""

import math
import time
from collections.abc import Callable, Sequence

from rota.config import WorkerConfig
from rota.database.database import Database
from rota.errors import StoreError
from rota.events import PausedLeft
from rota.model.patterns import meant
from rota.model.states import State
from rota.worker.apps import Apps

RECENTLY = 3
"""Each database of several must have been found empty within so many `poll`s, before all of them are looked at together."""

ROUNDS = 2
"""A job may have moved on to a database that was looked at before it: so often all are looked at."""


Left = list[tuple[Apps, PausedLeft]]
"""What is left in paused queues, and of which database."""


class Draining:
    """Ends a worker once all its databases are empty.

    Args:
        configs: How it behaves on each database; names the queues.
        databases: The apps of each.
        done: Called then, with what is left in paused queues; perhaps by several of them.
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
        """No job is left here of this database: stop, unless others wait or run somewhere. Called by its claimer."""
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
    """What is left in paused queues; `None` while other jobs wait or run."""
    left: Left = []
    for apps, config in databases:
        try:
            found = left_over(apps.first.database, config.queues)
        except StoreError:
            if len(databases) == 1:
                raise
            return None
        if found is None:
            return None
        left += [(apps, paused) for paused in found]
    return left


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
