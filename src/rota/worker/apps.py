"""The apps of one worker: what it does for all of them at once, and what belongs to each.

They share what a worker has to do with the database: one session, claimer, settler. Everything that
users have written stays with its app: a job is run inside of the middleware of its task's app, with
the resources of that app's lifespans, and told to that app's subscribers.
"""

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any

from rota.app.app import Rota
from rota.app.batch import BatchTask
from rota.app.bulk_job import NAME as BULK
from rota.app.bulk_job import declare
from rota.app.here import context_of
from rota.app.shard import Shard
from rota.app.task import Task
from rota.dispatch import Events
from rota.errors import ConfigError, CronEntryExists, TaskAlreadyRegistered
from rota.model.patterns import meaning
from rota.model.queue_settings import QueueSettings
from rota.relay.relay import Relay
from rota.store.url import shown
from rota.worker.events_of_apps import EventsOfApps

if TYPE_CHECKING:
    from rota.cron.entry import CronEntry

AnyTask = Task[..., Any, Any]


class Apps:
    """The apps whose tasks one worker runs.

    Attributes:
        tasks: The tasks of all, by name, and Rota's own. Some apps have tasks that are found only
            when they are asked for.
        events: Told of what happens in the worker.
        identity: Which database they have, once they are `ready`.

    Raises:
        ConfigError: There is none.
        TaskAlreadyRegistered: Two have a task of one name.
        CronEntryExists: Two declare a cron entry of one name.
    """

    tasks: Mapping[str, AnyTask]
    events: Events
    identity: str

    def __init__(self, apps: Rota | Iterable[Rota]) -> None:
        every = (apps,) if isinstance(apps, Rota) else tuple(dict.fromkeys(apps))
        for app in every:
            if not isinstance(app, Rota):
                message = f"a worker runs the tasks of a rota.Rota, or of several; this is a {type(app).__name__}"
                raise ConfigError(message)
        if not every:
            message = "a worker needs at least one app: Worker(rota), or Worker([shop, mail])"
            raise ConfigError(message)
        self._apps = every
        declare(self.first)
        if len(every) == 1:
            self.tasks, self.events = every[0].tasks, every[0].events
            return
        self._check_names()
        self.tasks = _Tasks(*(app.tasks for app in every))
        self.events = EventsOfApps({app.events: app.tasks for app in every})

    def __iter__(self) -> Iterator[Rota]:
        return iter(self._apps)

    @property
    def first(self) -> Rota:
        """The app whose store the worker uses."""
        return self._apps[0]

    @property
    def queues(self) -> set[str]:
        """Those that users' tasks name."""
        return {task.options.queue for name, task in self.tasks.items() if name != BULK}

    @property
    def batch(self) -> dict[str, BatchTask[Any, Any]]:
        """The tasks whose handlers serve many jobs in one call."""
        return {name: task for app in self._apps for name, task in app.tasks.batch.items()}

    def relays(self, wanted: Collection[str]) -> list[Relay]:
        """Those that a worker sends which names these queues.

        Raises:
            ConfigError: A relay's queue has another task, or a pattern means it: a claim would take
                its jobs away.
        """
        relays = [task for task in self.tasks.values() if isinstance(task, Relay)]
        queues = {relay.queue for relay in relays}
        for name, task in self.tasks.items():
            if task.options.queue in queues and not isinstance(task, Relay):
                message = (
                    f"task {name!r} has the queue of relay {task.options.queue!r}, which keeps its jobs in order and "
                    "shares it with no task; give the task another queue"
                )
                raise ConfigError(message)
        for queue in queues.difference(wanted):
            if (pattern := meaning(wanted, queue)) is not None:
                message = (
                    f"queue {pattern!r} also matches the queue of relay {queue!r}, whose jobs are sent in order and not "
                    "claimed; name the queues, or give a narrower pattern"
                )
                raise ConfigError(message)
        return [relay for relay in relays if relay.queue in wanted]

    @property
    def declarations(self) -> "tuple[CronEntry, ...]":
        """The cron entries that they declare."""
        return tuple(entry for app in self._apps for entry in app.cron.declarations())

    def ready(self) -> None:
        """Check that the database has the tables, and that it is one.

        Raises:
            SchemaMissing: Run `rota migrate`; likewise the other schema errors.
            ConfigError: The apps have several databases.
        """
        for app in self._apps:
            app.database.ready()
        first = self.identity = _identity(self.first)
        if len({app.url for app in self._apps}) == 1:
            return
        for app in self._apps[1:]:
            if _identity(app) != first:
                message = (
                    f"these apps have two databases, {shown(self.first.url)} and {shown(app.url)}, but a worker "
                    "works on one; run a worker for each, or give all of them the same one by ROTA_DATABASE_URL or --url"
                )
                raise ConfigError(message)

    @property
    def context(self) -> Context:
        """The context of what their handlers do: on a shard, if they are one's."""
        first = self.first
        return context_of(first.here) if isinstance(first, Shard) else Context()

    # Queues ----------------------------------------------------------------------------------

    def learn(self, stored: Mapping[str, QueueSettings]) -> None:
        """Let each heed what the database says of queues."""
        for app in self._apps:
            app.queues.learn(stored)

    def concurrency(self) -> dict[str, int]:
        """How many jobs the worker may run at once, of the queues for which that is said."""
        return _least(app.queues.concurrency() for app in self._apps)

    def discarded(self) -> dict[str, float]:
        """How long discarded jobs stay, of the queues in which they do not stay for ever."""
        return _least(app.queues.discarded() for app in self._apps)

    # Names -----------------------------------------------------------------------------------

    def _check_names(self) -> None:
        tasks: dict[str, AnyTask] = {}
        entries: set[str] = set()
        for app in self._apps:
            for name, task in app.tasks.items():
                # Each app has Rota's own task that was once the first one of a worker.
                if name != BULK and (other := tasks.setdefault(name, task)) is not task:
                    message = (
                        f"two apps have a task named {name!r}: {_place(other)} and {_place(task)}; give one of them "
                        "a name=, or run a worker for each app"
                    )
                    raise TaskAlreadyRegistered(message)
            if twice := entries & app.cron.declared.keys():
                message = (
                    f"two apps have a cron entry named {min(twice)!r}, but a database has only one of that name; "
                    "give one of them another name: cron(..., name=...)"
                )
                raise CronEntryExists(message)
            entries |= app.cron.declared.keys()


class _Tasks(ChainMap[str, AnyTask]):
    """The tasks of several apps."""

    def get(self, name: str, default: Any = None) -> Any:
        """The task of that name, also one that an app finds only now."""
        try:
            return self[name]
        except KeyError:
            return default


def _least(said: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each queue the smallest number: each app has said how many at most, or how long at most."""
    least: dict[str, Any] = {}
    for numbers in said:
        for queue, number in numbers.items():
            least[queue] = min(number, least.get(queue, number))
    return least


def _identity(app: Rota) -> str:
    with app.database.store.lent() as connection:
        return connection.run(app.database.store.identity())


def _place(task: AnyTask) -> str:
    return f"{task.function.__module__}.{task.function.__qualname__}"
