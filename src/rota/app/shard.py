"""One of several databases that are one app: a `Rota` of its own, with tasks declared for all."""

import copy
from datetime import timedelta
from functools import cached_property
from typing import Any

from rota.app.app import Rota
from rota.app.enqueue import Enqueuer
from rota.app.enqueuing import Enqueuing
from rota.app.here import Here, at
from rota.app.lifespan import Lifespans
from rota.app.middleware import Middleware
from rota.app.task import Task
from rota.app.tasks import Tasks
from rota.dispatch import Events
from rota.events import Event


class Shard(Rota):
    """A shard. Made by `Rota.shards`.

    It has its own connections, queues, cron entries and subscribers, and shares with the others
    what was declared for all: tasks, middleware and lifespans.

    Attributes:
        here: Which one of which app it is.
    """

    tasks: "BoundTasks"

    def __init__(
        self,
        here: Here,
        url: str,
        middleware: Middleware,
        lifespan: Lifespans,
        *,
        retention: float | timedelta,
        max_args_bytes: int | None,
        connections: int | None,
    ) -> None:
        self.here = here
        self._shared = middleware, lifespan
        super().__init__(
            url, retention=retention, max_args_bytes=max_args_bytes, connections=connections
        )

    def __repr__(self) -> str:
        return f"<Shard {self.name}>"

    @property
    def name(self) -> str:
        """Its name among the shards."""
        return self.here.shard

    @property
    def enqueuer(self) -> Enqueuer:
        """What stores its jobs."""
        return self._enqueuer

    @cached_property
    def identity(self) -> str:
        """Which database it is, whatever URL leads there.

        Raises:
            StoreUnavailable: It cannot be reached.
        """
        return self.database.apart(self.database.store.identity())

    def use(self, url: str) -> None:
        """Keep its jobs in another database from now on.

        Raises:
            ConfigError: The URL cannot be used; then nothing has changed.
        """
        super().use(url)
        self.__dict__.pop("identity", None)

    def adopt(self, task: Task[..., Any, Any]) -> None:
        """Have a task, too, that was declared for all."""
        self.tasks.adopt(task, self._enqueuer)

    def _find_tasks(self) -> "BoundTasks":
        return BoundTasks()

    def _make_events(self) -> Events:
        return EventsOfShard(self.here)

    def _make_enqueuer(self, max_args_bytes: int | None) -> Enqueuer:
        self.middleware, self.lifespan = self._shared
        enqueuer = super()._make_enqueuer(max_args_bytes)
        enqueuer.shard = self.name
        return enqueuer


class BoundTasks(Tasks):
    """The tasks of one shard: those that were declared for all, each bound to this one's database."""

    def adopt(self, task: Task[..., Any, Any], enqueuer: Enqueuer) -> None:
        """Add a task that was declared for all."""
        self.register(_bound(task, enqueuer))

    def meant(self, given: object) -> object:
        """The shard's own task, of one that was declared for all and may have other options by now."""
        if not isinstance(given, Task):
            return given
        own = self.get(given.name)
        if own is None or own.function is not given.function or own.enqueuing is given.enqueuing:
            return given
        return _bound(given, own.enqueuing)


class EventsOfShard(Events):
    """Tells the subscribers of one shard, on that shard."""

    def __init__(self, here: Here) -> None:
        super().__init__()
        self._here = here

    def emit(self, event: Event) -> None:
        """Tell the subscribers to the event's kind, and to the kinds it derives from."""
        with at(self._here):
            super().emit(event)


def _bound(task: Task[..., Any, Any], enqueuing: Enqueuing) -> Task[..., Any, Any]:
    """The same task, with its jobs in this database."""
    bound = copy.copy(task)
    bound.enqueuing = enqueuing
    bound.keeps = enqueuing.queues.keeps(task.keeps.retention)
    return bound
