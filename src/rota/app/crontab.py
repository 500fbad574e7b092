"""The cron entries of an app: declared in code, added and changed while it runs.

@rota.cron("0 9 * * MON-FRI", timezone="Europe/Rome", due="at")
@rota.task
def digest(at: datetime) -> None: ...

rota.cron.add("digest of tenant 7", "@daily", digest, timezone="Asia/Tokyo")
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from rota.app import declaring
from rota.app.declaring import Args
from rota.app.enqueue import Enqueuer
from rota.app.handle import JobHandle
from rota.app.task import Task
from rota.app.tasks import Tasks
from rota.errors import ConfigError, CronEntryExists, CronEntryNotFound
from rota.model.options import check_name

if TYPE_CHECKING:
    from rota.cron.entry import CronEntry, CronRecord
    from rota.store.cron import Ran

T = TypeVar("T")
AnyTask = TypeVar("AnyTask", bound=Task[..., Any, Any])


class Crontab:
    """The cron entries of an app, `rota.cron`.

    The app's own code declares entries with `@rota.cron(...)`; a worker that starts writes them to
    the database. The methods act on all entries of the database. With `conn=`, a connection or
    session of the caller, they do so in its transaction. Each has an async twin.

    Attributes:
        declared: The entries that this process has declared, by name.
    """

    def __init__(self, enqueuer: Enqueuer, tasks: Tasks) -> None:
        self._enqueuer = enqueuer
        self._tasks = tasks
        self._database = enqueuer.database
        self._queues = enqueuer.queues
        self.declared: dict[str, CronEntry] = {}

    def declarations(self) -> "tuple[CronEntry, ...]":
        """What a worker that starts writes: `declared`, with what the code says of the queues.

        Only now, since the code may declare a queue after the entries whose jobs wait in it.
        """
        return tuple(declaring.filled(entry, self._queues) for entry in self.declared.values())

    def __call__(
        self,
        expression: str,
        /,
        *,
        name: str | None = None,
        timezone: str = "UTC",
        missed: str = "latest",
        jitter: float | timedelta = 0,
        args: Args = (),
        due: str | None = None,
    ) -> Callable[[AnyTask], AnyTask]:
        """Declare an entry: a decorator above `@rota.task`, which gives the task back unchanged.

        Args:
            expression: Minute, hour, day of the month, month, weekday; six fields begin with the
                second; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
            name: The entry's name in the database; by default that of the task.
            timezone: The zone whose wall clock the expression means.
            missed: What becomes of due times when no worker was running: `skip` them, make one
                job at the `latest` of them, or `all`.
            jitter: Seconds (or a timedelta): each job starts up to this much after its due time.
            args: The task's args: a tuple of positional ones, or a dict.
            due: The name of the task's parameter that gets the due time, an aware datetime.

        Raises:
            ConfigError: An option cannot be used, or the expression never comes.
            ArgsError: The args do not fit the task; raised when the task is known.
            CronEntryExists: There is an entry of that name already; likewise.
        """

        def declare(task: AnyTask) -> AnyTask:
            if not isinstance(task, Task):
                message = "cron: decorates a task; write @rota.cron(...) above @rota.task"
                raise ConfigError(message)
            entry = self._entry(
                task.name if name is None else name,
                expression,
                task,
                timezone=timezone,
                missed=missed,
                jitter=jitter,
                args=args,
                due=due,
            )
            if entry.name in self.declared:
                message = (
                    f"there is already a cron entry named {entry.name!r}; "
                    "give one of them another name: cron(..., name=...)"
                )
                raise CronEntryExists(message)
            self.declared[entry.name] = entry
            return task

        # What needs no task is checked at once, on the line that is wrong.
        declaring.checked(expression, timezone, missed, jitter)
        return declare

    # Looking ---------------------------------------------------------------------------------

    def entries(self) -> "list[CronRecord]":
        """All entries of the database, by name."""
        return self._database.run(self._database.store.cron.entries())

    async def aentries(self) -> "list[CronRecord]":
        """`entries` for async code."""
        return await self._database.arun(self._database.store.cron.entries())

    # Changing --------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        expression: str,
        task: Task[..., Any, Any] | str,
        *,
        timezone: str = "UTC",
        missed: str = "latest",
        jitter: float | timedelta = 0,
        args: Args = (),
        due: str | None = None,
        conn: object = None,
    ) -> None:
        """Add an entry to the database; `task` may be a task's name. Else as in the decorator.

        Raises:
            ConfigError: An option cannot be used, or the expression never comes.
            TaskNotFound: No task of that name is registered here.
            ArgsError: The args do not fit the task.
            CronEntryExists: There is already an entry of that name.
        """
        entry = self._entry(
            name, expression, task,
            timezone=timezone, missed=missed, jitter=jitter, args=args, due=due,
        )  # fmt: skip
        entry = declaring.filled(entry, self._queues)
        _added(name, self._database.run(self._database.store.cron.add(entry), conn))

    async def aadd(
        self,
        name: str,
        expression: str,
        task: Task[..., Any, Any] | str,
        *,
        timezone: str = "UTC",
        missed: str = "latest",
        jitter: float | timedelta = 0,
        args: Args = (),
        due: str | None = None,
        conn: object = None,
    ) -> None:
        """`add` for async code; `conn=` may be an async connection or session."""
        entry = self._entry(
            name, expression, task,
            timezone=timezone, missed=missed, jitter=jitter, args=args, due=due,
        )  # fmt: skip
        entry = declaring.filled(entry, self._queues)
        _added(name, await self._database.arun(self._database.store.cron.add(entry), conn))

    def change(
        self,
        name: str,
        *,
        expression: str | None = None,
        timezone: str | None = None,
        missed: str | None = None,
        jitter: float | timedelta | None = None,
        args: Args | None = None,
        conn: object = None,
    ) -> None:
        """Change an entry; what is not given stays as it is.

        With another expression or time zone its due times count from now on. An entry that comes
        from code keeps the change until its declaration changes.

        Raises:
            ConfigError: An option cannot be used, or the expression never comes.
            ArgsError: The args do not fit the task, or make no key.
            TaskNotFound: Args were given, and the entry's task is not registered here.
            CronEntryNotFound: There is no entry of that name.
        """
        changes = declaring.changes(expression, timezone, missed, jitter, nothing=args is None)
        if args is not None:
            changes |= self._args(name, self.entries(), args)
        _must(
            name, self._database.run(self._database.store.cron.change(_sought(name), changes), conn)
        )

    async def achange(
        self,
        name: str,
        *,
        expression: str | None = None,
        timezone: str | None = None,
        missed: str | None = None,
        jitter: float | timedelta | None = None,
        args: Args | None = None,
        conn: object = None,
    ) -> None:
        """`change` for async code."""
        changes = declaring.changes(expression, timezone, missed, jitter, nothing=args is None)
        if args is not None:
            changes |= self._args(name, await self.aentries(), args)
        _must(
            name,
            await self._database.arun(
                self._database.store.cron.change(_sought(name), changes), conn
            ),
        )

    def remove(self, name: str, *, conn: object = None) -> None:
        """Remove an entry. One that is still in the code comes back when a worker starts.

        Raises:
            CronEntryNotFound: There is no entry of that name.
        """
        _must(name, self._database.run(self._database.store.cron.remove(_sought(name)), conn))

    async def aremove(self, name: str, *, conn: object = None) -> None:
        """`remove` for async code."""
        _must(
            name, await self._database.arun(self._database.store.cron.remove(_sought(name)), conn)
        )

    def pause(self, name: str, *, conn: object = None) -> bool:
        """Make no jobs of an entry until it is resumed; false if it was already paused.

        Raises:
            CronEntryNotFound: There is no entry of that name.
        """
        return _found(
            name, self._database.run(self._database.store.cron.pause(_sought(name)), conn)
        )

    async def apause(self, name: str, *, conn: object = None) -> bool:
        """`pause` for async code."""
        return _found(
            name, await self._database.arun(self._database.store.cron.pause(_sought(name)), conn)
        )

    def resume(self, name: str, *, conn: object = None) -> bool:
        """Make jobs of an entry again; false if it was not paused.

        Due times that came while it was paused were not missed, and are not made up.

        Raises:
            CronEntryNotFound: There is no entry of that name.
        """
        return _found(
            name, self._database.run(self._database.store.cron.resume(_sought(name)), conn)
        )

    async def aresume(self, name: str, *, conn: object = None) -> bool:
        """`resume` for async code."""
        return _found(
            name, await self._database.arun(self._database.store.cron.resume(_sought(name)), conn)
        )

    def run(self, name: str, *, conn: object = None) -> JobHandle[Any]:
        """Enqueue a job of an entry now, paused or not; its due times stay as they are.

        A parameter for the due time gets the current second. Where a unique job of its key is there
        already, the handle is on that one, and its `placing` says so.

        Raises:
            CronEntryNotFound: There is no entry of that name.
        """
        return self._handle(
            name, self._database.run(self._database.store.cron.run(_sought(name)), conn)
        )

    async def arun(self, name: str, *, conn: object = None) -> JobHandle[Any]:
        """`run` for async code."""
        return self._handle(
            name, await self._database.arun(self._database.store.cron.run(_sought(name)), conn)
        )

    # What they share -------------------------------------------------------------------------

    def _handle(self, name: str, ran: "Ran | None") -> JobHandle[Any]:
        if ran is None:
            raise _not_found(name)
        [(job, placing)] = self._enqueuer.announce(ran.spec, ran.stored).placed
        return self._enqueuer.handle(job, self._tasks.codec, placing)

    def _args(self, name: str, records: "list[CronRecord]", args: Args) -> dict[str, str | None]:
        """Other args for an entry that is there, and what follows from them."""
        for record in records:
            if record.entry.name == name:
                task = self._tasks.find(record.entry.task)
                changed = declaring.with_args(record.entry, task, args)
                return {"args": changed.args, "options": changed.options}
        raise _not_found(name)

    def _entry(
        self, name: str, expression: str, task: Task[..., Any, Any] | str, **options: Any
    ) -> "CronEntry":
        if isinstance(task, str):
            return declaring.built(name, expression, self._tasks.find(task), **options)
        known = self._tasks.meant(task)
        if not (isinstance(known, Task) and known.enqueuing is self._enqueuer):
            message = f"cron: must be a task of this app, or its name, not {task!r}"
            raise ConfigError(message)
        return declaring.built(name, expression, known, **options)


def _sought(name: str) -> str:
    """A name that an entry may have; others are not even asked for, since no database has them."""
    try:
        return check_name(name, "cron")
    except ConfigError:
        raise _not_found(name) from None


def _added(name: str, done: bool) -> None:  # noqa: FBT001 - what the store said
    if not done:
        message = (
            f"there is already a cron entry named {name!r}; change it, or give the new one "
            "another name"
        )
        raise CronEntryExists(message)


def _must(name: str, done: bool) -> None:  # noqa: FBT001 - what the store said
    if not done:
        raise _not_found(name)


def _found(name: str, done: bool | None) -> bool:  # noqa: FBT001 - what the store said
    if done is None:
        raise _not_found(name)
    return done


def _not_found(name: str) -> CronEntryNotFound:
    message = f"there is no cron entry named {name!r}; `rota cron list` lists all entries"
    return CronEntryNotFound(message)
