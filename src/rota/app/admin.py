"""The tables, the queues, the limits and the workers of a database: `rota.admin`.

What concerns one queue is in `Rota.queue`, cron entries are in `Rota.cron`.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rota.app.job_filter import check_count
from rota.database.database import Database
from rota.model.audit import AuditRecord
from rota.model.durations import seconds
from rota.model.job import QueueRecord
from rota.model.limit_record import LimitRecord
from rota.model.options import check_name
from rota.model.worker_record import HeldJob, WorkerRecord
from rota.store import migrate
from rota.store.execute import in_thread
from rota.store.health import HeldFacts, SessionFacts

if TYPE_CHECKING:
    from rota.model.history import HistoryPoint
    from rota.store.operation import Operation

JOBS = 100
"""Jobs that are shown of a worker, unless it is said how many."""

LIMITS = 100
"""Limits that are shown, unless it is said how many."""

DEEDS = 50
"""Deeds that are shown, unless it is said how many."""

LATELY = 6 * 3600.0
"""Seconds of the history that are shown, unless it is said how many."""


class Admin:
    """Rota's tables, and lists of what is in them. An attribute: `rota.admin`.

    It does what `rota migrate`, `history`, `audit` do, and `list` of queues, limits, workers.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # The tables ------------------------------------------------------------------------------

    def version(self) -> int:
        """The version of Rota's tables in the database; 0: there are none. Creates nothing.

        Raises:
            SchemaIncomplete: There are tables, but their version is missing.
            SchemaTooNew: A newer Rota has taken away what this Rota uses.
        """
        store = self._database.store
        if store.missing_file() is not None:
            return 0
        with store.lent() as connection:
            return migrate.version_of(store, connection)

    async def aversion(self) -> int:
        """`version` for async code."""
        return await in_thread(self.version)

    def pending(self) -> dict[int, str]:
        """The migrations that the database still needs: the SQL of each, by the version it leads to.

        For the database's own client: each is applied as a whole or not at all, and records its
        version.

        Raises:
            SchemaOutdated: The tables are too old for this Rota to migrate.
            SchemaIncomplete: There are tables, but their version is missing.
            SchemaTooNew: A newer Rota has taken away what this Rota uses.
        """
        return migrate.scripts(self._database.store, self.version())

    async def apending(self) -> dict[int, str]:
        """`pending` for async code."""
        return await in_thread(self.pending)

    def migrate(
        self, *, to: int | None = None, waiting: Callable[[], None] = lambda: None
    ) -> list[int]:
        """Bring Rota's tables up to date, as `rota migrate` does; returns the versions that it applied.

        Args:
            to: The version to stop at, by default the newest. New tables are always created at the
                newest.
            waiting: Called once if the tables are in use; then it keeps trying for up to a minute.

        Raises:
            StoreUnavailable: The tables stayed in use; steps that are done stay done.
            ConfigError: There is no way to the version `to`.
            SchemaOutdated: The tables are too old for this Rota to migrate.
            SchemaIncomplete: There are tables, but their version is missing.
            SchemaTooNew: A newer Rota has taken away what this Rota uses.
        """
        store = self._database.store
        with store.lent() as connection:
            return migrate.migrate(store, connection, to=to, waiting=waiting)

    async def amigrate(self, *, to: int | None = None) -> list[int]:
        """`migrate` for async code."""
        return await in_thread(self.migrate, to=to)

    # Queues and workers ----------------------------------------------------------------------

    def queues(self) -> list[QueueRecord]:
        """All queues that ever had a job, a setting or a pause, by name, with their counts.

        The counts are exact in one moment, and cost the same whatever the number of jobs.
        """
        return self._database.run(self._database.store.queues())

    async def aqueues(self) -> list[QueueRecord]:
        """`queues` for async code."""
        return await self._database.arun(self._database.store.queues())

    def workers(self, *, jobs: int = JOBS) -> list[WorkerRecord]:
        """The workers with open sessions; a dead worker is among them until it is rescued.

        Args:
            jobs: How many of the jobs that each worker holds are returned at most.

        Raises:
            ConfigError: `jobs` is not a whole number of at least 1.
        """
        check_count(jobs, "jobs")
        database = self._database
        sessions = database.run(database.store.workers())
        return worker_records(sessions, database.run(database.store.held(jobs)), datetime.now(UTC))

    async def aworkers(self, *, jobs: int = JOBS) -> list[WorkerRecord]:
        """`workers` for async code."""
        return await in_thread(self.workers, jobs=jobs)

    def limits(self, *, most: int = LIMITS) -> list[LimitRecord]:
        """The limits whose jobs wait, are held by workers, or have started lately, by their keys.

        Idle ones are left out: whatever they would say is in the code. The numbers are those of one
        moment.

        Args:
            most: Up to so many.

        Raises:
            ConfigError: `most` is no number of limits.
        """
        database = self._database
        return database.run(database.store.limits(check_count(most, "most")))

    async def alimits(self, *, most: int = LIMITS) -> list[LimitRecord]:
        """`limits` for async code."""
        return await in_thread(self.limits, most=most)

    def history(
        self,
        queue: str | None = None,
        *,
        since: float | timedelta = LATELY,
        step: float | timedelta = 60.0,
    ) -> "list[HistoryPoint]":
        """What happened lately, by the minute: how many jobs came, were claimed, ended and waited.

        Workers write it down once a minute, and it is kept for seven days. Minutes in which there
        was no worker are missing; what came in them is in the next one. A minute is told as soon as
        it is over.

        Args:
            queue: Its name; by default all queues together.
            since: How long ago it begins, in seconds or as a timedelta; the first point is a whole
                one.
            step: How long a point lasts, in whole minutes: longer ones add up those of their
                minutes.

        Raises:
            ConfigError: No queue can have this name, or a duration cannot be.
        """
        return self._database.run(self._history(queue, since, step))

    async def ahistory(
        self,
        queue: str | None = None,
        *,
        since: float | timedelta = LATELY,
        step: float | timedelta = 60.0,
    ) -> "list[HistoryPoint]":
        """`history` for async code."""
        return await self._database.arun(self._history(queue, since, step))

    def _history(
        self, queue: str | None, since: float | timedelta, step: float | timedelta
    ) -> "Operation[list[HistoryPoint]]":
        from rota.model.history import ALL, first_minute, whole_minutes

        name = ALL if queue is None else check_name(queue, "queue")
        first = first_minute(datetime.now(UTC), seconds(since, "since"))
        minutes = whole_minutes(seconds(step, "step"))
        return self._database.store.history.read(name, since=first - first % minutes, step=minutes)

    def audit(self, *, most: int = DEEDS, before: int | None = None) -> list[AuditRecord]:
        """What people did on the dashboard, the newest first; the newest 10,000 deeds are kept.

        Args:
            most: Up to so many.
            before: The last deed of the page before; only earlier ones follow.

        Raises:
            ConfigError: `most` is no number of deeds.
        """
        database = self._database
        return database.run(database.store.audit.records(check_count(most, "most"), before))

    async def aaudit(self, *, most: int = DEEDS, before: int | None = None) -> list[AuditRecord]:
        """`audit` for async code."""
        return await in_thread(self.audit, most=most, before=before)


def worker_records(
    sessions: Iterable[SessionFacts], held: Iterable[HeldFacts], now: datetime
) -> list[WorkerRecord]:
    """The workers of these sessions, with the jobs that they hold."""

    def ago(seconds: float) -> datetime:
        return now - timedelta(seconds=max(seconds, 0.0))

    jobs: dict[int, list[HeldJob]] = {}
    for one in held:
        since = None if one.seconds is None else ago(one.seconds)
        jobs.setdefault(one.session, []).append(
            HeldJob(one.job, one.task, one.queue, one.attempt, since)
        )
    found = []
    for session in sessions:
        host, _, pid = session.worker.rpartition(":")
        found.append(
            WorkerRecord(
                session.id, host, int(pid), session.queues, ago(session.open), session.silent,
                session.timeout, session.leased, tuple(jobs.get(session.id, ())),
            )
        )  # fmt: skip
    return found
