"""`rota[prometheus]`: what a worker's own events measure, for the Prometheus client.

    instrument(rota)

`rota worker --health HOST:PORT` then answers `GET /metrics`; elsewhere the client's own server or
page does. What is counted here is of this process: `rota metrics` measures the database as a whole,
once for all workers.

Labels are bounded. Tasks are those of the app, and queues those that its code or the worker names;
every other one is `other`, so that names in a database cannot make series without end. Handlers in
child processes are measured here, in the worker. What handlers themselves count in child processes
is on the same page where the client's variable `PROMETHEUS_MULTIPROC_DIR` is set.
"""

import os
import time
from collections.abc import Sequence
from weakref import WeakSet

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from rota.app.app import Rota
from rota.app.shards import Shards
from rota.errors import ConfigError
from rota.events import (
    JobsClaimed,
    JobSettled,
    JobStarted,
    LeasesLost,
    SessionLost,
    SessionRescued,
    SettlementsWritten,
    WorkerStarted,
    WorkerStopped,
)
from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.patterns import is_pattern

OTHER = "other"
"""The label of tasks and queues that are not known here."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
"""Upper ends of the buckets for waiting and running."""

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Those for statements."""

COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Those for jobs of one claim."""

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""The client's variable with the folder through which processes share what they count."""

_instrumented: "WeakSet[Rota | Shards]" = WeakSet()
_metrics: "dict[CollectorRegistry, _Metrics]" = {}


def instrument(app: Rota | Shards, *, registry: CollectorRegistry = REGISTRY) -> None:
    """Measure workers of an app in this process, shards together; apps may share a registry.

    Raises:
        ConfigError: The app is already instrumented.
    """
    if app in _instrumented:
        message = (
            "rota.prometheus: this app is already instrumented; it would count everything twice"
        )
        raise ConfigError(message)
    _instrumented.add(app)
    if registry not in _metrics:
        _metrics[registry] = _Metrics(registry)
    for each in app.values() if isinstance(app, Shards) else (app,):
        _Worker(each, _metrics[registry])


def exposition(registry: CollectorRegistry = REGISTRY) -> tuple[bytes, str]:
    """A page with a whole registry, and its content type; of all processes that share a folder."""
    if MULTIPROCESS in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Metrics:
    """The metrics in one registry, and the apps that share it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.workers: list[_Worker] = []

        def histogram(name: str, says: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, says, labels, registry=registry, buckets=buckets)

        self.wait = histogram(
            "rota_job_wait_seconds",
            "From the enqueue of a job to the start of its first attempt, including any delay.",
            SECONDS, "queue", "task",
        )  # fmt: skip
        self.run = histogram(
            "rota_job_run_seconds", "How long runs of handlers took.", SECONDS, "queue", "task"
        )
        self.settled = Counter(
            "rota_jobs_settled_total", "Runs that ended, by outcome.", ("queue", "task", "outcome"),
            registry=registry,
        )  # fmt: skip
        self.claim = histogram("rota_claim_seconds", "How long claims took.", SHORT)
        self.claimed = histogram("rota_claimed_jobs", "How many jobs a claim brought.", COUNTS)
        self.settle = histogram(
            "rota_settle_seconds", "How long it took to write settlements, many at once.", SHORT
        )
        self.busy = Gauge(
            "rota_worker_busy", "Jobs that run in this worker.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.slots = Gauge(
            "rota_worker_slots", "How many jobs this worker runs at once at most.",
            registry=registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self.lost = Counter(
            "rota_leases_lost_total",
            "Settlements that were refused because other workers had taken over the jobs.",
            registry=registry,
        )
        self.rescued = Counter(
            "rota_jobs_rescued_total", "Jobs that this worker took back from workers that died.",
            registry=registry,
        )  # fmt: skip

    def tell_slots(self) -> None:
        """How many may run: the apps of one worker have the same slots."""
        self.slots.set(max(worker.slots for worker in self.workers))

    def tell_busy(self) -> None:
        """How many jobs run, of all these apps."""
        self.busy.set(sum(len(worker.began) for worker in self.workers))


class _Worker:
    """Follows the events of one app."""

    def __init__(self, app: Rota, metrics: _Metrics) -> None:
        self.began: dict[tuple[JobId, LeaseId], float] = {}
        self.slots = 0
        self._app = app
        self._metrics = metrics
        self._queues: set[str] = set()
        # Asking a metric for its labels costs more than counting. By labels, hence bounded as they
        # are.
        self._of_jobs: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}
        self._of_outcomes: dict[tuple[str, ...], Counter] = {}
        metrics.workers.append(self)
        app.on(WorkerStarted)(self._worker_started)
        app.on(WorkerStopped)(self._worker_stopped)
        app.on(SessionLost)(self._session_lost)
        app.on(JobStarted)(self._job_started)
        app.on(JobSettled)(self._job_settled)
        app.on(JobsClaimed)(self._claimed)
        app.on(SettlementsWritten)(lambda event: metrics.settle.observe(event.seconds))
        app.on(LeasesLost)(lambda event: metrics.lost.inc(len(event.jobs)))
        app.on(SessionRescued)(self._rescued)

    def _labels(self, job: ClaimedJob) -> tuple[str, str]:
        """The queue and the task, if they are known here."""
        return (
            job.queue if job.queue in self._queues else OTHER,
            job.task if job.task in self._app.tasks else OTHER,
        )

    def _worker_started(self, event: WorkerStarted) -> None:
        named = {queue for queue in event.queues if not is_pattern(queue)}
        of_tasks = {task.spec.queue for task in self._app.tasks.values()}
        self._queues = named | of_tasks | self._app.queues.declared.keys()
        self.slots = event.concurrency
        self._metrics.tell_slots()

    def _worker_stopped(self, _: WorkerStopped) -> None:
        self.slots = 0
        self._metrics.tell_slots()
        self._forget()

    def _session_lost(self, _: SessionLost) -> None:
        # Others run its jobs, which end here without a word.
        self._forget()

    def _forget(self) -> None:
        self.began.clear()
        self._metrics.tell_busy()

    def _job_started(self, event: JobStarted) -> None:
        job = event.job
        if job.attempt == 1:
            wait, _ = self._metered(self._labels(job))
            wait.observe(max(0.0, time.time() - job.enqueued_at))
        self.began[job.id, job.lease] = time.monotonic()
        self._metrics.tell_busy()

    def _job_settled(self, event: JobSettled) -> None:
        job, labels = event.job, self._labels(event.job)
        began = self.began.pop((job.id, job.lease), None)
        if began is not None:
            _, run = self._metered(labels)
            run.observe(time.monotonic() - began)
            self._metrics.tell_busy()
        self._counted(*labels, event.settlement.move.value).inc()

    def _claimed(self, event: JobsClaimed) -> None:
        self._metrics.claim.observe(event.seconds)
        self._metrics.claimed.observe(event.count)

    def _rescued(self, event: SessionRescued) -> None:
        self._metrics.rescued.inc(len(event.rescue.available) + len(event.rescue.discarded))

    def _metered(self, labels: tuple[str, str]) -> tuple[Histogram, Histogram]:
        """What measures such jobs: their waiting and their running."""
        if (found := self._of_jobs.get(labels)) is None:
            found = self._metrics.wait.labels(*labels), self._metrics.run.labels(*labels)
            self._of_jobs[labels] = found
        return found

    def _counted(self, *labels: str) -> Counter:
        """What counts such ends."""
        if (found := self._of_outcomes.get(labels)) is None:
            found = self._of_outcomes[labels] = self._metrics.settled.labels(*labels)
        return found
