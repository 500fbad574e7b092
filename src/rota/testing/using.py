"""Which transaction a test kit looks at, and the ways from a call to what it does there."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self

from rota.app.app import APPS, Rota
from rota.app.here import at
from rota.app.resources import OF_TEST, Resources
from rota.app.shard import Shard
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import JobId
from rota.store.execute import adrive, drive
from rota.testing.attempts import Flow
from rota.testing.calling import Later, Now, Side, later, now
from rota.testing.confinement import Confinement
from rota.testing.drain import Drain
from rota.testing.frames import hidden
from rota.testing.guard import Guard
from rota.testing.jobs import TaskLike

__tracebackhide__ = hidden


class Using:
    """The connection of a test, and the app that is confined to it."""

    def __init__(
        self,
        connection: object = None,
        *,
        app: Rota | None = None,
        unique: Literal["test", "real"] = "test",
    ) -> None:
        self._app = app
        self._unique = unique
        self._now: Now | None = None
        self._later: Later | None = None
        self._confinement: Confinement | None = None
        self._drain: Drain | None = None
        self._resources = Resources(OF_TEST)
        self._end: Any = None
        self._guard: Guard | None = None
        if connection is not None:
            self.use(connection)

    def use(
        self,
        connection: object,
        *,
        app: Rota | None = None,
        unique: Literal["test", "real"] | None = None,
    ) -> Self:
        """Look at the jobs of this connection's or session's transaction from now on.

        Jobs already enqueued in it are seen, too. From now on, everything that the app does with
        its database happens in this transaction, even without `conn=`, until the kit is closed.

        Raises:
            ConfigError: The connection cannot be used; the message says why.
        """
        self.close()
        self._app = app or self._app or only_app()
        self._unique = unique or self._unique
        if self._unique not in {"test", "real"}:
            message = f'unique must be "test" or "real", not {self._unique!r}'
            raise ConfigError(message)
        test = f"test-{token_hex(4)}" if self._unique == "test" else ""
        database = self._app.database
        confinement = Confinement(database, connection, test)
        if database.store.name != "sqlite":
            database.ready(make=False)
        end = database.confine(confinement)
        self._confinement, self._end = confinement, end
        self._now, self._later = Now(confinement), Later(confinement)
        self._drain = Drain(self._app, confinement, self._resources)
        begin = self._drain.begin
        try:
            confinement.start(partial(self._do, begin), partial(self._ado, begin))
        except BaseException:
            self.close()
            raise
        return self

    def provide(self, **resources: object) -> None:
        """Give handlers these resources, by type or by name, as a worker's lifespans would.

        The lifespans themselves are not entered.
        """
        for name, value in resources.items():
            self._resources.add(name, value)

    def enqueued(self) -> frozenset[JobId]:
        """The jobs that the app has enqueued since `use`."""
        confinement = self._confinement
        return frozenset() if confinement is None else frozenset(confinement.isolated.orders)

    def close(self) -> None:
        """Give the app its own database back. The transaction stays as it is; the test rolls it back."""
        if self._guard is not None:
            self._guard.end()
        if self._end is not None:
            self._end()
        if self._now is not None:
            self._now.close()
        if self._confinement is not None and self._confinement.alias is not None:
            # Django removes its test database in the end, which nothing may be connected to.
            self._mine_app.database.close()
        self._confinement = self._drain = self._end = self._now = self._later = self._guard = None

    def guard(self) -> None:
        """Refuse enqueues that would be committed, until there is a connection.

        It does so only where it is plain which app is meant.
        """
        app = self._app or (next(iter(APPS)) if len(APPS) == 1 else None)
        if self._end is None and self._guard is None and app is not None:
            self._guard = Guard(app)

    def __enter__(self) -> Self:
        self.guard()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Within --------------------------------------------------------------------------------------

    @property
    def _part(self) -> Drain:
        if self._drain is None:
            message = (
                "the kit has no connection yet: call rota_test.use(connection_or_session), or override the "
                "fixture rota_connection"
            )
            raise ConfigError(message)
        return self._drain

    @property
    def _mine_app(self) -> Rota:
        self._app = self._app or only_app()
        return self._app

    def _do(self, flow: Any) -> Any:
        side, confinement = self._now, self._confinement
        assert side is not None  # noqa: S101 - there is a drain
        assert confinement is not None  # noqa: S101 - and so there is this
        if confinement.awaits:
            return confinement.from_thread(partial(self._ado, flow))
        confinement.require_thread()
        with self._here():
            return drive(self._flow(flow, side), now)

    async def _ado(self, flow: Any) -> Any:
        side, confinement = self._later, self._confinement
        assert side is not None  # noqa: S101 - there is a drain
        assert confinement is not None  # noqa: S101 - and so there is this
        await confinement.started()
        with self._here():
            return await adrive(self._flow(flow, side), later)

    def _here(self) -> AbstractContextManager[None]:
        """On the app's shard, if it is one, as its jobs are in a worker."""
        app = self._mine_app
        return at(app.here) if isinstance(app, Shard) else nullcontext()

    def _flow(self, flow: Any, side: Side) -> Flow:
        return (yield from flow(side))

    def _mine(self, given: TaskLike) -> Task[..., Any, Any]:
        """The task, if the app has it.

        Raises:
            ConfigError: It is another app's.
        """
        self._part  # noqa: B018 - refuses without a connection
        task = self._mine_app.tasks.meant(given)
        if not isinstance(task, Task):
            message = (
                f"this is not a task of the app: {task!r}. Is the function decorated with @rota.task, or is it a "
                "Django task on Rota's backend?"
            )
            raise ConfigError(message)
        if (
            self._mine_app.tasks.get(task.name) is None
            or task.enqueuing.database is not self._mine_app.database
        ):
            message = (
                f"task {task.name!r} is of another app than the one of rota_test.use(...): give the task's own "
                "app, rota_test.use(connection, app=...)"
            )
            raise ConfigError(message)
        return task


def only_app() -> Rota:
    """The app of this process.

    Raises:
        ConfigError: There is none, or more than one.
    """
    apps = list(APPS)
    if len(apps) == 1:
        return apps[0]
    if not apps:
        message = "there is no Rota app yet: import the module that makes it, or say app=..."
        raise ConfigError(message)
    message = (
        f"there are {len(apps)} Rota apps in this process: say which one, rota_test.use(connection, app=...), or "
        "override the fixture rota_app"
    )
    raise ConfigError(message)
