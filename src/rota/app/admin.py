"""The tables, the queues, the limits and the workers of a database: `rota.admin`.

What concerns one queue is in `Rota.queue`, cron entries are in `Rota.cron`.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from rota.app.job_filter import check_count
from rota.database.database import Database
from rota.model.job import QueueRecord
from rota.model.limit_record import LimitRecord
from rota.model.worker_record import HeldJob, WorkerRecord
from rota.store import migrate
from rota.store.execute import in_thread
from rota.store.health import HeldFacts, SessionFacts

JOBS = 100
"""Jobs that are shown of a worker, unless it is said how many."""

LIMITS = 100
"""Limits that are shown, unless it is said how many."""


class Admin:
    """What the commands `rota migrate`, `rota queues list`, `rota limits list` and `rota workers list` do. An attribute: `rota.admin`."""

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

        For the database's own client: each is applied as a whole or not at all, and records its version.

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
            to: The version to stop at, by default the newest. New tables are always created at the newest.
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
        """The workers that have not closed their sessions; a dead worker is among them until it is rescued.

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

        Idle ones are left out: whatever they would say is in the code. The numbers are those of one moment.

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
