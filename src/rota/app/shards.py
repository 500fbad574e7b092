"""Several databases as one app: tasks are declared once, and each job lies on one shard.

rota = Rota.shards({"eu": "postgresql://eu/shop", "us": "postgresql://us/shop"}, key="{tenant}")

@rota.task
def invoice(tenant: str, number: int) -> None: ...

invoice.enqueue("acme", 1)                # on the shard of "acme"
invoice.enqueue("acme", 2, conn=session)  # where that session's transaction is

Each shard is a `Rota` with an engine of its own, and what Rota promises holds for each: limits,
unique keys, order and fairness know nothing of other shards.
"""

import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from rota.app.declares_tasks import DeclaresTasks
from rota.app.handle import JobHandle
from rota.app.here import HERE, NAMING, Here, at
from rota.app.lifespan import Lifespans
from rota.app.middleware import Crossing, Middleware
from rota.app.mover import Moved, Mover
from rota.app.queues import Queues
from rota.app.routing import Router
from rota.app.shard import Shard
from rota.app.task import Task
from rota.app.tasks import Tasks
from rota.database.transaction_block import OwnTransaction
from rota.errors import ConfigError, JobNotFound
from rota.events import Event
from rota.model.durations import seconds
from rota.model.job import LARGEST_ID
from rota.model.queue_settings import Retention
from rota.store.shard_urls import checked, from_environment

if TYPE_CHECKING:
    from rota.app.flow import Flow
    from rota.dashboard.mounting import Dashboard

E = TypeVar("E", bound=Event)
A = TypeVar("A", None, Coroutine[Any, Any, None])

CROSSING = "rota.shard"
"""The name by which child processes know on which shard their job lies."""


class Shards(DeclaresTasks, Mapping[str, Shard]):
    """Several databases as one app: maps each shard's name to its `Rota`. Made by `Rota.shards`.

    Attributes:
        lifespan: Registers what surrounds each worker's run, as `Rota.lifespan` does.
        middleware: What is registered around enqueues, after their shard is chosen, and around
            runs; on all shards.
    """

    _enqueuer: Router

    def __init__(
        self,
        urls: Mapping[str, str] | None = None,
        *,
        key: str | None,
        pinned: Mapping[str, str] | None,
        retention: float | timedelta,
        max_args_bytes: int | None,
        connections: int | None,
    ) -> None:
        urls = checked(from_environment() if urls is None else urls)
        self.middleware = Middleware()
        self.middleware.cross(CROSSING, Crossing(_send, self._receive))
        self.lifespan = Lifespans()
        self._shards = {
            name: Shard(
                Here(self, name),
                url,
                self.middleware,
                self.lifespan,
                retention=retention,
                max_args_bytes=max_args_bytes,
                connections=connections,
            )
            for name, url in urls.items()
        }
        self.tasks = TasksOfAll(self._shards)
        self._enqueuer = Router(
            self._shards,
            Queues(seconds(retention, "retention")),
            self.tasks,
            self.middleware,
            max_args_bytes=max_args_bytes,
            key=key,
            pinned={key: self._named(name) for key, name in (pinned or {}).items()},
        )
        logging.getLogger("rota").addFilter(NAMING)

    # The shards ------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Shard:
        return self._shards[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shards)

    def __len__(self) -> int:
        return len(self._shards)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<Shards {', '.join(self)}>"

    def of(self, key: str) -> str:
        """The name of the shard of a key: where it is pinned, else where its hash puts it.

        The hash is the same in each process and each version of Rota. A shard that is added takes
        its share of the keys from the others, and no other key changes its shard.
        """
        return self._enqueuer.of(key)

    @property
    def here(self) -> str:
        """The name of the current shard: by `on`, in a handler, in a subscriber.

        Raises:
            ConfigError: There is no current shard.
        """
        return self._enqueuer.here.name

    # Both a name and a kind of event, as on a `Rota`: what is declared for one database can be
    # declared for several.
    @overload
    def on(self, name: str, /) -> AbstractContextManager[Shard]: ...
    @overload
    def on(self, kind: type[E], /) -> Callable[[Callable[[E], A]], Callable[[E], A]]: ...
    def on(self, what: Any, /) -> Any:
        """`with rota.on("eu"):` puts jobs there; `@rota.on(JobSettled)` subscribes on all shards.

        Within the block jobs lie on that shard, unless their `conn=` leads to another one. In a
        subscriber, `here` says on which shard the event happened.

        Raises:
            ConfigError: There is no shard of that name.
        """
        if isinstance(what, str):
            return self._on(self._named(what))

        def subscribe(handler: Any) -> Any:
            for shard in self._shards.values():
                shard.events.subscribe(what, handler)
            return handler

        return subscribe

    @contextmanager
    def _on(self, name: str) -> Iterator[Shard]:
        token = self._enqueuer.on.set(name)
        try:
            yield self._shards[name]
        finally:
            self._enqueuer.on.reset(token)

    # What is declared for all ----------------------------------------------------------------

    def queue(
        self,
        name: str,
        /,
        *,
        retention: Retention | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        concurrency: int | None = None,
    ) -> None:
        """Declare defaults for a queue's jobs on each shard, as `Rota.queue` does for one database.

        Raises:
            ConfigError: A value cannot be used, or the queue was declared before.
        """
        for queues in (self._enqueuer.queues, *(shard.queues for shard in self._shards.values())):
            queues.declare(name, retention, max_attempts, timeout, concurrency)

    # Jobs ------------------------------------------------------------------------------------

    def flow(
        self,
        name: str,
        /,
        *,
        on: str | None = None,
        conn: object = None,
        retention: float | timedelta | None = None,
        deadline: float | timedelta | None = None,
    ) -> "Flow":
        """Build a flow, as `Rota.flow` does for one database: all of its jobs lie on one shard.

        Which one is known when the block ends: where `conn` leads, what `on` says, the shard of the
        keys that the args of its jobs make, that of the handler which builds it. `rota["eu"].flows`
        finds it again.

        Args:
            name: What flows of this kind are called; many may have one name.
            on: A shard's name, for whatever keys the jobs have.
            conn: A connection or session of yours, whose transaction the flow joins.
            retention: As for `Rota.flow`.
            deadline: As for `Rota.flow`.

        Raises:
            ConfigError: An option cannot be used; or, when the block ends, nothing says where, or
                the keys of the jobs have several shards.
        """
        from rota.app.flow import Flow  # here: many programs have none

        return Flow(
            self._enqueuer, name, on=None if on is None else self._named(on), conn=conn,
            retention=retention, deadline=deadline,
        )  # fmt: skip

    def job(self, reference: str) -> JobHandle[Any]:
        """A handle on the job that `reference` names: `eu:123`, as in a handle's `reference`.

        Raises:
            ConfigError: There is no shard of that name.
            JobNotFound: It is not a reference.
        """
        name, colon, job = str(reference).rpartition(":")
        if not (colon and job.isascii() and job.isdigit() and int(job) <= LARGEST_ID):
            message = f"{reference!r} does not name a job of several databases; write eu:123, as in JobHandle.reference"
            raise JobNotFound(message)
        return self._shards[self._named(name)].job(int(job))

    def transaction(self) -> OwnTransaction:
        """A transaction of Rota's own on the current shard, for `with` and `async with`.

        Raises:
            ConfigError: There is no current shard.
        """
        return self._enqueuer.here.transaction()

    def dashboard(self, *, access: object = None) -> "Dashboard":
        """A page for people who look after jobs, as `Rota.dashboard` gives: of all shards and each.

        Args:
            access: An `Access`, or a function from the framework's request to one. The pages of a
                shard are below `shard/NAME/`, so a function can tell the shards by the path.

        Raises:
            ConfigError: `access` is not said, or the extra is not installed.
        """
        from rota.dashboard.mounting import Dashboard  # here: most programs have none

        return Dashboard(self, access)

    def move(self, key: str, *, to: str) -> Moved:
        """Move the waiting jobs of a key from other shards to the shard where the key belongs now.

        They keep everything but their ids and their notes. The process may be killed at any point:
        the next call finishes what it began, and nothing is lost or duplicated. Pin the key first,
        in every process that enqueues, and call this until it moves nothing and nothing runs
        elsewhere.

        Args:
            key: As for `of`.
            to: The shard to which the key belongs, to be sure.

        Raises:
            ConfigError: The key belongs elsewhere, or there is no such shard, or no `key=`.
            StoreUnavailable: A shard is away. If it is `to`, nothing was moved; else the jobs on
                all other shards were.
        """
        if not self._enqueuer.has_key:
            message = "these shards have no key: say which args make it, Rota.shards(…, key=…)"
            raise ConfigError(message)
        if (home := self.of(key)) != self._named(to):
            message = (
                f"new jobs of {key!r} belong to {home}: pin the key to {to} first (pinned={{{key!r}: {to!r}}}), in every "
                "process that enqueues, then move the waiting jobs"
            )
            raise ConfigError(message)
        return Mover(self._shards, key, to, lambda job: self._enqueuer.key_of(job) == key).move()

    # The app itself --------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections to all shards; using the object again opens new ones."""
        for shard in self._shards.values():
            shard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _named(self, name: str) -> str:
        if name not in self._shards:
            message = f"there is no shard {name!r}; the shards are {', '.join(self)}"
            raise ConfigError(message)
        return name

    def _receive(self, sent: Mapping[str, str], call: Callable[[], Any]) -> Any:
        """Call a handler in a child process, on its job's shard."""
        if not sent:
            return call()
        with at(Here(self, sent["shard"])):
            return call()


class TasksOfAll(Tasks):
    """The tasks that are declared for all shards."""

    def __init__(self, shards: Mapping[str, Shard]) -> None:
        super().__init__()
        self._shards = shards

    def register(self, task: Task[..., Any, Any]) -> None:
        """Add a task here, and to each shard.

        Raises:
            TaskAlreadyRegistered: There is already a task of that name.
        """
        super().register(task)
        for shard in self._shards.values():
            shard.adopt(task)


def _send() -> Mapping[str, str]:
    here = HERE.get()
    return {} if here is None else {"shard": here.shard}
