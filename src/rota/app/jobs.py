"""Looking at jobs and acting on them, many at once: `rota.jobs`.

Looking can be part of the caller's transaction, and sees the jobs of that transaction then. Acting
cannot (see `acting`).
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Unpack

from rota.app.acting import BATCH, CANCEL, DELETE, RETRY, Changed, Steps, acting
from rota.app.job_filter import Job, Wanted, check_count, job_filter, job_ids
from rota.app.queues import Queues
from rota.database.database import Database
from rota.model.job import JobFilter, JobId, JobRecord, QueueRecord
from rota.model.notes import with_notes
from rota.model.states import State
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

PAGE = 50
"""Jobs of a listing, unless it is said how many."""

BOUND = 1_000
"""Jobs that one call changes at the most, unless it is said how many."""

Records = list[JobRecord]
Ids = list[JobId]
Given = Job | Iterable[Job] | None
"""Jobs to act on; without any, those that are found."""


class Jobs:
    """The jobs of a database. An attribute of the app: `rota.jobs`.

    The filters are `state=`, `queue=`, `task=` (a name or a `Task`) and `subject=` (a unique key,
    or the beginning of a key and a `*`). Each method raises `ConfigError` for an impossible value,
    and has an async twin with an `a` in front.
    """

    def __init__(self, database: Database, queues: Queues) -> None:
        self._database = database
        self._queues = queues

    # Looking ---------------------------------------------------------------------------------

    def list(
        self,
        *,
        limit: int = PAGE,
        after: Job | None = None,
        conn: object = None,
        **wanted: Unpack[Wanted],
    ) -> Records:
        """A page of jobs, newest first, without progress and log lines: `get` has these.

        Args:
            limit: At most so many.
            after: The last job of the previous page; only older jobs follow.
            conn: A connection or session of the caller, to look from its transaction.
            wanted: `state=`, `queue=`, `task=`, `subject=`.
        """
        return self._database.run(self._listing(limit, after, wanted), conn)

    async def alist(
        self,
        *,
        limit: int = PAGE,
        after: Job | None = None,
        conn: object = None,
        **wanted: Unpack[Wanted],
    ) -> Records:
        """`list` for async code."""
        return await self._database.arun(self._listing(limit, after, wanted), conn)

    def iterate(
        self, *, after: Job | None = None, conn: object = None, **wanted: Unpack[Wanted]
    ) -> Iterator[JobRecord]:
        """All such jobs, the newest first, page by page; jobs that come meanwhile are left out."""
        return self._pages(_page(BATCH, after, wanted), conn)

    def aiterate(
        self, *, after: Job | None = None, conn: object = None, **wanted: Unpack[Wanted]
    ) -> AsyncIterator[JobRecord]:
        """`iterate` for async code: `async for job in rota.jobs.aiterate(…)`."""
        return self._apages(_page(BATCH, after, wanted), conn)

    def count(self, *, conn: object = None, **wanted: Unpack[Wanted]) -> int:
        """How many such jobs there are.

        By state and queue, counters give the exact number, at a cost that does not grow with the
        jobs. With `task=`, `subject=` or `conn=` the jobs are read and counted.
        """
        database = self._database
        conn = database.joining(conn)
        if conn is None and _counted(wanted):
            return _sum(job_filter(wanted), database.run(database.store.queues()))
        return database.run(database.store.count_jobs(job_filter(wanted)), conn)

    async def acount(self, *, conn: object = None, **wanted: Unpack[Wanted]) -> int:
        """`count` for async code."""
        database = self._database
        conn = await database.ajoining(conn)
        if conn is None and _counted(wanted):
            return _sum(job_filter(wanted), await database.arun(database.store.queues()))
        return await database.arun(database.store.count_jobs(job_filter(wanted)), conn)

    def get(self, jobs: Job | Iterable[Job], *, conn: object = None) -> Records:
        """Everything about these jobs, in the given order; ids that do not exist are left out."""
        return drive(self._getting(job_ids(jobs)), partial(self._database.run, conn=conn))

    async def aget(self, jobs: Job | Iterable[Job], *, conn: object = None) -> Records:
        """`get` for async code."""
        return await adrive(self._getting(job_ids(jobs)), partial(self._database.arun, conn=conn))

    # Acting ----------------------------------------------------------------------------------

    def retry(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        alone: bool = False,
        **wanted: Unpack[Wanted],
    ) -> Ids:
        """Make jobs available now, with all their attempts; returns the ids of the jobs it changed.

        Name the jobs, or find them by filters. Only jobs that have finished, or wait for their
        time, change. Without `state=` the filters find discarded jobs. A finished job with a unique
        key stays as it is while another job has the key.

        A failed or cancelled job of a flow stays as it is when its node has ended and `retry` of
        the flow would run it again, with what waits for it: see `Flows.left_to_retry`.

        Args:
            jobs: Ids, handles or records.
            limit: How many of the jobs that filters find it changes at most; `None` for all.
            alone: Also retry jobs that are left to a retry of their flow: each runs by itself, and
                leaves its flow for good.
            wanted: `state=`, `queue=`, `task=`, `subject=`; one of them at least.
        """
        return [*drive(self._retrying(jobs, limit, wanted, alone=alone), self._database.run)]

    async def aretry(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        alone: bool = False,
        **wanted: Unpack[Wanted],
    ) -> Ids:
        """`retry` for async code."""
        return [
            *await adrive(self._retrying(jobs, limit, wanted, alone=alone), self._database.arun)
        ]

    def cancel(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        **wanted: Unpack[Wanted],
    ) -> dict[JobId, State]:
        """Cancel waiting jobs, and ask running ones to stop; returns the state of each afterwards.

        That is `cancelled`, or `running` until the job's worker hears of it. Jobs that you name and
        that had already finished are returned with their state. Without `state=` the filters find
        all jobs that have not finished.

        Args:
            jobs: Ids, handles or records.
            limit: How many of the jobs that filters find it changes at most; `None` for all.
            wanted: `state=`, `queue=`, `task=`, `subject=`; one of them at least.
        """
        return drive(self._cancelling(jobs, limit, wanted), self._database.run)

    async def acancel(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        **wanted: Unpack[Wanted],
    ) -> dict[JobId, State]:
        """`cancel` for async code."""
        return await adrive(self._cancelling(jobs, limit, wanted), self._database.arun)

    def delete(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        **wanted: Unpack[Wanted],
    ) -> Ids:
        """Delete jobs that are not running, and all about them; returns the ids of deleted jobs.

        Args:
            jobs: Ids, handles or records.
            limit: How many of the jobs that filters find it changes at most; `None` for all.
            wanted: `state=`, `queue=`, `task=`, `subject=`; one of them at least.
        """
        return [*drive(self._deleting(jobs, limit, wanted), self._database.run)]

    async def adelete(
        self,
        jobs: Given = None,
        /,
        *,
        limit: int | None = BOUND,
        **wanted: Unpack[Wanted],
    ) -> Ids:
        """`delete` for async code."""
        return [*await adrive(self._deleting(jobs, limit, wanted), self._database.arun)]

    # Steps: what they yield is run, in sync or in async code ----------------------------------

    def _listing(self, limit: int, after: Job | None, wanted: Wanted) -> Operation[Records]:
        return self._database.store.list_jobs(_page(limit, after, wanted))

    def _pages(self, wanted: JobFilter, conn: object) -> Iterator[JobRecord]:
        while True:
            page = self._database.run(self._database.store.list_jobs(wanted), conn)
            yield from page
            if len(page) < wanted.limit:
                return
            wanted = replace(wanted, after=page[-1].id)

    async def _apages(self, wanted: JobFilter, conn: object) -> AsyncIterator[JobRecord]:
        while True:
            page = await self._database.arun(self._database.store.list_jobs(wanted), conn)
            for job in page:
                yield job
            if len(page) < wanted.limit:
                return
            wanted = replace(wanted, after=page[-1].id)

    def _getting(self, jobs: Ids) -> Steps[Records]:
        records = yield self._database.store.get(jobs)
        # After the jobs: the notes of a job that has ended are complete then.
        notes = yield self._database.store.notes([record.id for record in records])
        return [with_notes(record, notes.get(record.id, ())) for record in records]

    def _retrying(
        self, jobs: Given, limit: int | None, wanted: Wanted, *, alone: bool
    ) -> Steps[Changed]:
        store = self._database.store
        retry = partial(store.retry, alone=alone)
        return acting(RETRY, store.list_jobs, retry, jobs, limit=limit, wanted=wanted)

    def _cancelling(self, jobs: Given, limit: int | None, wanted: Wanted) -> Steps[Changed]:
        store = self._database.store
        cancel = partial(store.cancel, keep=self._queues.cancelled())
        return acting(CANCEL, store.list_jobs, cancel, jobs, limit=limit, wanted=wanted)

    def _deleting(self, jobs: Given, limit: int | None, wanted: Wanted) -> Steps[Changed]:
        store = self._database.store
        return acting(DELETE, store.list_jobs, store.delete, jobs, limit=limit, wanted=wanted)


def _page(limit: int, after: Job | None, wanted: Wanted) -> JobFilter:
    """The filter of one page.

    Raises:
        ConfigError: A value cannot be.
    """
    last = None
    if after is not None:
        [last] = job_ids((after,)) or [JobId(1)]  # no job is older than the first
    return replace(job_filter(wanted), limit=check_count(limit, "limit"), after=last)


def _counted(wanted: Wanted) -> bool:
    """Whether the counters know how many such jobs there are."""
    return wanted.get("task") is None and wanted.get("subject") is None


def _sum(wanted: JobFilter, queues: Iterable[QueueRecord]) -> int:
    return sum(
        jobs
        for queue in queues
        if wanted.queue in {None, queue.name}
        for state, jobs in queue.counts.items()
        if wanted.state in {None, state}
    )
