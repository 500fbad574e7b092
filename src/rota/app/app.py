"""The application object: one database, and the tasks whose jobs it keeps."""

import functools
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar
from weakref import WeakSet

from rota.app.crontab import Crontab
from rota.app.declares_tasks import DeclaresTasks
from rota.app.enqueue import Enqueuer
from rota.app.handle import JobHandle
from rota.app.lifespan import Lifespans
from rota.app.middleware import Middleware
from rota.app.queue_handle import QueueHandle
from rota.app.queues import Queues
from rota.app.tasks import Tasks
from rota.args import MAX_ARGS_BYTES
from rota.args.provided import PROVIDED
from rota.config import DAY
from rota.database.database import Database
from rota.database.transaction_block import OwnTransaction
from rota.dispatch import Events
from rota.events import Event
from rota.log import Log
from rota.model.durations import seconds
from rota.model.job import JobId
from rota.model.queue_settings import Retention
from rota.store.opening import default_url

if TYPE_CHECKING:
    from rota.app.admin import Admin
    from rota.app.flow import Flow
    from rota.app.flows import Flows
    from rota.app.jobs import Jobs
    from rota.app.shards import Shards
    from rota.dashboard.mounting import Dashboard
    from rota.relay.relay import Relay
    from rota.relay.target import Target

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=Event)
A = TypeVar("A", None, Coroutine[Any, Any, None])

APPS: "WeakSet[Rota]" = WeakSet()
"""Those of this process: a test's transaction is the database of all of them that it can be."""


class Rota(DeclaresTasks):
    """A job queue in a database.

    Its attribute `PROVIDED` is the one of the module: `engine: Engine = rota.PROVIDED`.

    Args:
        url: `postgresql://…` or `sqlite:///file.db`; without one `ROTA_DATABASE_URL` is read, else
            the file `rota.db` in the current folder is used. Nothing is opened yet.
        retention: Seconds (or a timedelta) that completed and cancelled jobs stay readable; 0
            keeps none. Discarded ones stay until they are deleted or retried. `queue` sets it
            for single queues.
        max_args_bytes: The largest args a job may have, as JSON; `None` for no limit.
        connections: How many connections the app's calls and transactions may use at most, at
            least 3; a call that finds none free waits for up to 30 seconds. By default 10, and in a
            worker enough that each of the jobs that run at once can have a transaction.

    Raises:
        ConfigError: A setting cannot be used, or the driver is not installed.
    """

    PROVIDED: Final = PROVIDED

    _enqueuer: Enqueuer

    def __init__(
        self,
        url: str | None = None,
        *,
        retention: float | timedelta = DAY,
        max_args_bytes: int | None = MAX_ARGS_BYTES,
        connections: int | None = None,
    ) -> None:
        self.database = self._open(url, connections)
        self.tasks = self._find_tasks()
        """The app's tasks by their names."""
        self.queues = Queues(seconds(retention, "retention"))
        self.middleware = Middleware()
        """What is around enqueues and runs: see `around_enqueue` and `around_run`."""
        self.lifespan = Lifespans()
        """Registers what a worker opens and closes: `@rota.lifespan`."""
        self.events = self._make_events()
        """The stream of events; `on` subscribes to it."""
        Log(self.events)
        self._enqueuer = self._make_enqueuer(max_args_bytes)
        self.cron = Crontab(self._enqueuer, self.tasks)
        """Its cron entries: `@rota.cron("0 3 * * *")`, `add`, `change`, `pause`, `run` and more."""
        APPS.add(self)

    def _open(self, url: str | None, connections: int | None) -> Database:
        return Database(default_url() if url is None else url, connections)

    def _find_tasks(self) -> Tasks:
        return Tasks()

    def _make_events(self) -> Events:
        return Events()

    def _make_enqueuer(self, max_args_bytes: int | None) -> Enqueuer:
        return Enqueuer(
            self.database,
            self.queues,
            self.middleware,
            self.events,
            max_args_bytes=max_args_bytes,
            tasks=self.tasks,
        )

    @staticmethod
    def shards(
        urls: Mapping[str, str] | None = None,
        /,
        *,
        key: str | None = None,
        pinned: Mapping[str, str] | None = None,
        retention: float | timedelta = DAY,
        max_args_bytes: int | None = MAX_ARGS_BYTES,
        connections: int | None = None,
    ) -> "Shards":
        """Several databases as one app: `Rota.shards({"eu": url, "us": other_url})`.

        Args:
            urls: The database of each shard, by the shard's name; by default from `ROTA_SHARDS`,
                such as `eu=postgresql://… us=postgresql://…`.
            key: The args that decide on which shard a job lies, such as `"{tenant}"`, unless the
                caller decides; for tasks that have these parameters.
            pinned: The shards of particular keys, instead of those that their hashes would give
                them.
            retention: As for `Rota`, likewise the others; for each shard.
            max_args_bytes: As for `Rota`.
            connections: As for `Rota`.

        Raises:
            ConfigError: A name, a URL or the key cannot be used.
        """
        from rota.app.shards import Shards  # here: most programs have one database

        return Shards(
            urls,
            key=key,
            pinned=pinned,
            retention=retention,
            max_args_bytes=max_args_bytes,
            connections=connections,
        )

    # Queues and tasks ------------------------------------------------------------------------

    def queue(
        self,
        name: str,
        /,
        *,
        retention: Retention | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        concurrency: int | None = None,
    ) -> QueueHandle:
        """A handle on a queue; with options, also declares defaults for its jobs.

        `.using()`, the task and `rota queues set` override them. A queue need not be declared to be
        used.

        Args:
            name: The queue.
            retention: Seconds (or a timedelta) that completed and cancelled jobs stay readable, or
                a mapping from states: `{"completed": 3600, "discarded": timedelta(days=30)}`.
            max_attempts: How many times a job is tried before it is discarded.
            timeout: Seconds (or a timedelta) that one attempt may take.
            concurrency: How many of its jobs one worker process runs at once.

        Raises:
            ConfigError: A value cannot be used, or the queue was declared before.
        """
        handle = QueueHandle(self.database, name)
        if any(option is not None for option in (retention, max_attempts, timeout, concurrency)):
            self.queues.declare(name, retention, max_attempts, timeout, concurrency)
        return handle

    def relay(
        self, name: str, /, *, to: "Target", batch: int = 1000, retention: float | timedelta = 0
    ) -> "Relay":
        """Declare a relay: its jobs are messages, which a worker sends to a target in their order.

        Args:
            name: The name of the relay and its queue, and the `aggregatetype` of its messages.
            to: The target, such as `rota.relay.RedisStream("redis://localhost")`.
            batch: How many are sent at once at most.
            retention: Seconds (or a timedelta) that sent jobs stay readable.

        Raises:
            ConfigError: An option cannot be used.
            TaskAlreadyRegistered: There is already a task of that name.
        """
        from rota.relay.relay import Relay  # here: most programs have none

        relay = Relay(self._enqueuer, name, to, batch=batch, retention=retention)
        self.tasks.register(relay)
        return relay

    # Jobs ------------------------------------------------------------------------------------

    def job(self, job: int) -> JobHandle[Any]:
        """A handle on the job with that id. Nothing is looked up yet."""
        return self._enqueuer.handle(JobId(job), self.tasks.codec)

    @functools.cached_property
    def jobs(self) -> "Jobs":
        """Looking at jobs, and acting on them: list, count, retry, cancel, delete."""
        from rota.app.jobs import Jobs  # here: most programs only enqueue

        return Jobs(self.database, self.queues)

    def flow(
        self,
        name: str,
        /,
        *,
        conn: object = None,
        retention: float | timedelta | None = None,
        deadline: float | timedelta | None = None,
    ) -> "Flow":
        """Build a flow, jobs that wait for jobs, in a `with` (or `async with`) block.

        Args:
            name: What flows of this kind are called; many may have one name.
            conn: A connection or session of yours, whose transaction the flow joins.
            retention: Seconds (or a timedelta) that the flow stays readable once it has ended, with
                the results that its jobs are given; else that of the app.
            deadline: Seconds (or a timedelta) from now, after which it is cancelled.

        Raises:
            ConfigError: An option cannot be used.
        """
        from rota.app.flow import Flow  # here: many programs have none

        return Flow(self._enqueuer, name, conn=conn, retention=retention, deadline=deadline)

    @functools.cached_property
    def flows(self) -> "Flows":
        """Looking at flows: list them, find one again."""
        from rota.app.flows import Flows  # here: many programs have none

        return Flows(self._enqueuer)

    @functools.cached_property
    def admin(self) -> "Admin":
        """The database's tables, queues and workers."""
        from rota.app.admin import Admin  # here: most programs only enqueue

        return Admin(self.database)

    def dashboard(self, *, access: object = None) -> "Dashboard":
        """The dashboard, to be mounted in a web application; it needs `rota[dashboard]`.

        `app.mount("/rota", rota.dashboard(access=…))` under Starlette and FastAPI; its attribute
        `wsgi` is a WSGI application, for Flask and others.

        Args:
            access: An `Access`, or a function from the framework's request to one: who may do what.
                Without it there is no dashboard.

        Raises:
            ConfigError: `access` is missing, or the extra is not installed.
        """
        from rota.dashboard.mounting import Dashboard  # here: most programs have none

        return Dashboard(self, access)

    def transaction(self) -> OwnTransaction:
        """A transaction of Rota's own, for `with` and `async with`."""
        return self.database.transaction()

    # The app itself --------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the jobs are kept."""
        return self.database.url

    @property
    def max_args_bytes(self) -> int | None:
        """The largest args a job may have, as JSON; `None` for no limit."""
        return self._enqueuer.max_args_bytes

    def use(self, url: str) -> None:
        """Keep the jobs in another database from now on, as `rota worker --url` and tests do.

        Open connections are closed; transactions must have ended before.

        Raises:
            ConfigError: The URL cannot be used; then nothing has changed.
        """
        self.database.use(url)
        self.queues.forget()

    def ready(self) -> None:
        """Check now that the database has the tables that this Rota needs; a SQLite file gets them.

        The first enqueue does so too. In a test that uses the test kit, nothing is checked.

        Raises:
            SchemaMissing: Run `rota migrate`.
            SchemaIncomplete: A dump was restored without Rota's data.
            SchemaOutdated: Run `rota migrate`.
            SchemaTooNew: Upgrade Rota.
        """
        self.database.ready()

    def on(self, kind: type[E]) -> Callable[[Callable[[E], A]], Callable[[E], A]]:
        """Subscribe a function to a kind of event and all kinds derived from it: `@rota.on(JobSettled)`.

        A `def` is called where the event happens, and should be quick. An `async def` is called
        with one event after another on the loop of the worker in this process, or, without a
        worker, in a thread with a loop of its own.
        """

        def subscribe(handler: Callable[[E], A]) -> Callable[[E], A]:
            self.events.subscribe(kind, handler)
            return handler

        return subscribe

    def close(self) -> None:
        """Close all connections; using the object again opens new ones.

        Async subscribers that this process runs in a thread have five seconds to end before that.
        """
        if self.events.asynchronous is not None:
            self.events.asynchronous.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
