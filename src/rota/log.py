"""What Rota logs: a subscriber to events that writes lines to the logger `rota`.

Each line has the event's name and its ids as fields of the record (`extra=`), for formatters that
write JSON. Args are never logged, nor the messages of exceptions, which may hold args.
"""

import logging
import time
from shlex import quote
from typing import Any

from rota.dispatch import Events
from rota.events import (
    ChildReplaced,
    ClusterChanged,
    Event,
    JobDiscarded,
    JobExpired,
    JobFailed,
    JobOverdue,
    JobRetried,
    LeasesLost,
    LifespanOverdue,
    LifespanRaised,
    PausedLeft,
    QueueStrange,
    RelayInterrupted,
    SessionLost,
    SessionRescued,
    StoreLost,
    StoreRecovered,
    TaskUnknown,
    Tidied,
    UnknownLeft,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from rota.model.job import ClaimedJob
from rota.model.sizes import megabytes

logger = logging.getLogger("rota")

FIELDS = (
    "event",
    "job",
    "task",
    "queue",
    "attempt",
    "exception",
    "session",
    "part",
    "count",
    "lifespan",
    "shard",
)
"""The fields that a record of `Log` may have."""

REMINDER = 60.0
"""Seconds between two warnings of the same unknown task, which may have thousands of jobs."""

RETRY, DISCARD = "rota.outcome.Retry", "rota.outcome.Discard"
"""What a handler says on purpose: a retry is not logged then, and a discard is no error."""


class Log:
    """Writes lines about the events of one app."""

    def __init__(self, events: Events) -> None:
        events.subscribe(WorkerStarted, self._worker_started)
        events.subscribe(QueueStrange, self._queue_strange)
        events.subscribe(WorkerStopping, self._worker_stopping)
        events.subscribe(PausedLeft, self._paused_left)
        events.subscribe(UnknownLeft, self._unknown_left)
        events.subscribe(WorkerStopped, self._worker_stopped)
        events.subscribe(ChildReplaced, self._child_replaced)
        events.subscribe(ClusterChanged, self._cluster_changed)
        events.subscribe(LifespanOverdue, self._lifespan_overdue)
        events.subscribe(LifespanRaised, self._lifespan_raised)
        events.subscribe(JobRetried, self._job_retried)
        events.subscribe(JobDiscarded, self._job_discarded)
        events.subscribe(JobExpired, self._job_expired)
        events.subscribe(JobOverdue, self._job_overdue)
        events.subscribe(TaskUnknown, UnknownTasks())
        events.subscribe(LeasesLost, self._leases_lost)
        events.subscribe(RelayInterrupted, self._relay_interrupted)
        events.subscribe(SessionLost, self._session_lost)
        events.subscribe(SessionRescued, self._session_rescued)
        events.subscribe(StoreLost, self._store_lost)
        events.subscribe(StoreRecovered, self._store_recovered)
        events.subscribe(Tidied, self._tidied)

    @staticmethod
    def _worker_started(event: WorkerStarted) -> None:
        queues = ", ".join(event.queues)
        extra = _fields(event, session=event.session)
        logger.info("worker started: session %d, queues %s", event.session, queues, extra=extra)

    @staticmethod
    def _queue_strange(event: QueueStrange) -> None:
        line = "queue %s: no task here names it, and it has never had a job"
        values = [event.queue]
        if "," in event.queue:
            line += "; give --queue once for each queue"
        elif event.nearest is not None:
            line += "; did you mean %s?"
            values.append(event.nearest)
        logger.warning(line, *values, extra=_fields(event, queue=event.queue))

    @staticmethod
    def _worker_stopping(event: WorkerStopping) -> None:
        if event.running:
            line = "worker stopping: %d running job(s) have %g seconds left"
            extra = _fields(event, count=event.running)
            logger.info(line, event.running, event.grace, extra=extra)

    @staticmethod
    def _paused_left(event: PausedLeft) -> None:
        extra = _fields(event, queue=event.queue, count=event.count)
        line = "queue %s is paused; its %d job(s) are left"
        logger.warning(line, event.queue, event.count, extra=extra)

    @staticmethod
    def _unknown_left(event: UnknownLeft) -> None:
        extra = _fields(event, queue=event.queue, task=event.task, count=event.count)
        line = (
            "no worker of queue %s knows the task %s; its %d job(s) are left: run a worker whose app has the task, "
            "or `rota jobs cancel --queue %s --task %s`"
        )
        names = quote(event.queue), quote(event.task)
        logger.warning(line, event.queue, event.task, event.count, *names, extra=extra)

    @staticmethod
    def _worker_stopped(event: WorkerStopped) -> None:
        extra = _fields(event, session=event.session, count=event.released)
        line = "worker stopped: session %d, %d job(s) given back"
        logger.info(line, event.session, event.released, extra=extra)

    @staticmethod
    def _child_replaced(event: ChildReplaced) -> None:
        extra = _fields(event, count=event.jobs)
        line = "child process %d is replaced after %d job(s)"
        values: list[object] = [event.pid, event.jobs]
        if event.memory is not None:
            line += "; it has %s of memory in use"
            values.append(megabytes(event.memory))
        logger.info(line, *values, extra=extra)

    @staticmethod
    def _cluster_changed(event: ClusterChanged) -> None:
        extra = _fields(event, count=event.slots)
        logger.info("the %s cluster has %d slot(s)", event.engine, event.slots, extra=extra)
        if event.lacking:
            line = "no node of the %s cluster has what the jobs of %s need; they wait"
            logger.warning(line, event.engine, ", ".join(event.lacking), extra=extra)

    @staticmethod
    def _lifespan_overdue(event: LifespanOverdue) -> None:
        extra = _fields(event, lifespan=event.lifespan)
        line = "lifespan %s did not end within %g seconds, and was abandoned"
        logger.error(line, event.lifespan, event.timeout, extra=extra)

    @staticmethod
    def _lifespan_raised(event: LifespanRaised) -> None:
        exception = f"{type(event.error).__module__}.{type(event.error).__qualname__}"
        extra = _fields(event, lifespan=event.lifespan, exception=exception)
        line = "lifespan %s raised an exception as it ended"
        logger.error(line, event.lifespan, exc_info=event.error, extra=extra)

    @staticmethod
    def _job_retried(event: JobRetried) -> None:
        if event.exception != RETRY:
            _job_failed(event, logging.WARNING, "job %d (%s) attempt %d of %d failed: %s")

    @staticmethod
    def _job_discarded(event: JobDiscarded) -> None:
        level = logging.INFO if event.exception == DISCARD else logging.ERROR
        _job_failed(event, level, "job %d (%s) discarded after attempt %d of %d: %s")

    @staticmethod
    def _job_expired(event: JobExpired) -> None:
        job = event.job
        message = "job %d (%s) expired before it could begin, and was cancelled"
        logger.info(message, job.id, job.task, extra=_fields(event, job))

    @staticmethod
    def _job_overdue(event: JobOverdue) -> None:
        job = event.job
        logger.warning(
            "job %d (%s) has run longer than its timeout of %s seconds; a thread cannot be stopped from outside, "
            "so its Context says cancelled",
            job.id,
            job.task,
            job.timeout,
            extra=_fields(event, job),
        )

    @staticmethod
    def _leases_lost(event: LeasesLost) -> None:
        logger.warning(
            "LeaseLost: %d job(s) were taken over by other workers; what this worker did was not "
            "stored: %s",
            len(event.jobs),
            list(event.jobs[:20]),
            extra=_fields(event, count=len(event.jobs)),
        )

    @staticmethod
    def _relay_interrupted(event: RelayInterrupted) -> None:
        exception = f"{type(event.error).__module__}.{type(event.error).__qualname__}"
        line = "relay %s cannot send, and tries again in %g seconds: %s"
        extra = _fields(event, task=event.relay, exception=exception)
        logger.warning(line, event.relay, event.wait, type(event.error).__name__, extra=extra)

    @staticmethod
    def _session_lost(event: SessionLost) -> None:
        line = "session %s is lost; its jobs are left to other workers"
        logger.warning(line, event.session, extra=_fields(event, session=event.session))

    @staticmethod
    def _session_rescued(event: SessionRescued) -> None:
        rescue = event.rescue
        line = "session %s of worker %s died: %d job(s) available again, %d discarded"
        values = [rescue.session, rescue.worker, len(rescue.available), len(rescue.discarded)]
        if rescue.blamed is not None:
            line += "; job %s was running alone there, and its attempt is spent"
            values.append(rescue.blamed)
        logger.log(
            logging.ERROR if rescue.discarded else logging.WARNING,
            line,
            *values,
            extra=_fields(event, session=rescue.session),
        )

    @staticmethod
    def _store_lost(event: StoreLost) -> None:
        logger.warning("%s: %s", event.part, event.error, extra=_fields(event, part=event.part))

    @staticmethod
    def _store_recovered(event: StoreRecovered) -> None:
        line = "%s: the database answers again"
        logger.warning(line, event.part, extra=_fields(event, part=event.part))

    @staticmethod
    def _tidied(event: Tidied) -> None:
        for done in event.done:
            logger.info("upkeep: %s", done, extra=_fields(event, part="upkeep"))


class UnknownTasks:
    """Warns of tasks that are not known here, of each once in a while.

    Those of several apps are equal, as the functions above are: a worker of these apps tells only
    one.
    """

    def __init__(self) -> None:
        self._reminded: dict[str, float] = {}

    def __call__(self, event: TaskUnknown) -> None:
        """Warn, unless this was done lately."""
        job, now = event.job, time.monotonic()
        if now >= self._reminded.get(job.task, -REMINDER) + REMINDER:
            self._reminded[job.task] = now
            line = "no task named %r here: this worker gives its jobs back, such as job %d; is its module imported?"
            logger.warning(line, job.task, job.id, extra=_fields(event, job))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownTasks)

    def __hash__(self) -> int:
        return hash(UnknownTasks)


def _job_failed(event: JobFailed, level: int, line: str) -> None:
    job, exception = event.job, event.exception
    logger.log(
        level,
        line,
        job.id,
        job.task,
        job.attempt,
        job.max_attempts,
        exception.rpartition(".")[2],
        extra=_fields(event, job, exception=exception),
    )


def _fields(event: Event, job: ClaimedJob | None = None, **others: Any) -> dict[str, Any]:
    fields = {"event": type(event).__name__, **others}
    if job is not None:
        fields |= {"job": job.id, "task": job.task, "queue": job.queue, "attempt": job.attempt}
    return fields
