"""From what was seen to metrics, by Prometheus rules: seconds, bytes, `_total` for what only grows.

Labels are bounded: of more than a thousand queues, those that come later in the alphabet are
`other`. These are added up where that is a sum. Their counters are left out: queues come and go
there, and so would what was counted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rota.doctor.finding import Severity
from rota.doctor.tables import stuck
from rota.metrics.seen import Seen
from rota.model.job import QueueRecord
from rota.model.patterns import meaning
from rota.model.states import State
from rota.store.health import PostgresFacts
from rota.store.serving import alive
from rota.top.aside import Answer

MOST_QUEUES = 1000
"""Queues that have series of their own."""

OTHER = "other"
"""The label of the rest."""


def families(seen: Seen) -> Iterator[Metric]:
    """All metrics of a look."""
    yield from _queues(seen)
    yield from _lanes(seen)
    yield from _workers(seen)
    yield from _cron(seen)
    yield from _doctor(seen)
    yield _gauge("rota_look_seconds", "How long this look at the database took.", seen.took)


def of_shards(answers: Mapping[str, Answer[Seen]]) -> Iterator[Metric]:
    """All metrics of the shards that answer, with the label `shard`; and which of them do."""
    found: dict[str, Metric] = {}
    for shard, answer in answers.items():
        for family in () if answer.value is None else families(answer.value):
            known = found.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            known.samples += [
                sample._replace(labels={"shard": shard, **sample.labels})
                for sample in family.samples
            ]
    yield from found.values()
    up = {shard: float(answer.value is not None) for shard, answer in answers.items()}
    yield _each("rota_shard_up", "Whether the shard answers.", "shard", up)


def label(queues: Iterable[str]) -> Callable[[str], str]:
    """Which label a queue has, among these: its name, or `other`."""
    own = frozenset(sorted(queues)[:MOST_QUEUES])
    return lambda queue: queue if queue in own else OTHER


def _queues(seen: Seen) -> Iterator[Metric]:
    queues = seen.snapshot.queues
    named = label(queue.name for queue in queues)
    jobs: Counter[tuple[str, State]] = Counter()
    paused: Counter[str] = Counter()
    for queue in queues:
        paused[named(queue.name)] += queue.paused
        for state in State:
            jobs[named(queue.name), state] += queue.counts.get(state, 0)
    family = GaugeMetricFamily("rota_jobs", "Jobs, by state.", labels=("queue", "state"))
    for (name, state), count in jobs.items():
        family.add_metric((name, state.value), count)
    yield family
    yield _each("rota_queue_paused", "Whether the queue is paused.", "queue", paused)
    own = [queue for queue in queues if named(queue.name) == queue.name]
    yield _total("rota_jobs_appended", "How many times jobs became available.", own, appended)
    yield _total("rota_jobs_claimed", "How many times jobs were claimed.", own, claimed)


def appended(queue: QueueRecord) -> int:
    """How often a job of the queue became available, as the database has committed it."""
    return queue.appended


def claimed(queue: QueueRecord) -> int:
    """How often a job of the queue was claimed."""
    return queue.claimed


def _lanes(seen: Seen) -> Iterator[Metric]:
    named = label(queue.name for queue in seen.snapshot.queues)
    oldest = {named(queue.name): 0.0 for queue in seen.snapshot.queues}
    for lane in seen.snapshot.lanes:
        key = named(lane.queue)
        oldest[key] = max(oldest.get(key, 0.0), lane.oldest or 0.0)
    yield _each(
        "rota_queue_oldest_available_seconds",
        "How long ago the next job to start was enqueued; 0 where none is available.",
        "queue",
        oldest,
    )


def _workers(seen: Seen) -> Iterator[Metric]:
    living = [worker for worker in seen.snapshot.workers if alive(worker)]
    named = label(queue.name for queue in seen.snapshot.queues)
    # Of queues that share a label, the one with the fewest: an alert is about that.
    serving: dict[str, int] = {}
    for queue in seen.snapshot.queues:
        count = sum(meaning(worker.queues, queue.name) is not None for worker in living)
        key = named(queue.name)
        serving[key] = min(serving.get(key, count), count)
    yield _gauge("rota_workers", "Workers that are alive.", len(living))
    yield _each("rota_queue_workers", "Workers alive that serve the queue.", "queue", serving)


def _cron(seen: Seen) -> Iterator[Metric]:
    # Where no worker is alive, none declares an entry, and that is what an alert is for.
    living = any(map(alive, seen.snapshot.workers))
    late = {
        record.entry.name: max(0.0, (seen.at - record.due).total_seconds())
        for record in seen.cron
        if record.due is not None and not (record.paused or (record.undeclared and living))
    }
    yield _each(
        "rota_cron_lateness_seconds",
        "How long an entry has been due without a job; 0 where it is in time.",
        "entry",
        late,
    )


def _doctor(seen: Seen) -> Iterator[Metric]:
    held = [holder.seconds or 0.0 for holder in seen.snapshot.horizon.holders]
    yield _gauge(
        "rota_horizon_age_seconds",
        "How long the oldest transaction has been open that keeps old rows.",
        max(held, default=0.0),
    )
    facts = seen.facts
    if isinstance(facts, PostgresFacts):
        log = sum(table.total for table in facts.tables if table.ring == "log")
        yield _gauge("rota_log_bytes", "Bytes of the job log.", log)
        yield _gauge(
            "rota_segments_stuck",
            "Parts of tables whose space housekeeping could not free in time.",
            stuck(facts),
        )
        size = sum(table.total for table in facts.tables)
    else:
        size = facts.size
    yield _gauge("rota_tables_bytes", "Bytes of all tables of Rota's, or of the file.", size)
    found = {severity.name.lower(): 0 for severity in Severity if severity > Severity.OK}
    for finding in seen.findings:
        if finding.severity > Severity.OK:
            found[finding.severity.name.lower()] += 1
    yield _each("rota_findings", "What `rota doctor` finds.", "severity", found)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(name, says, value=value)


def _each(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, says, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def _total(
    name: str, says: str, queues: Iterable[QueueRecord], total: Callable[[QueueRecord], int]
) -> Metric:
    """A counter of each queue; the client adds `_total` to its name."""
    family = CounterMetricFamily(name, says, labels=("queue",))
    for queue in queues:
        family.add_metric((queue.name,), total(queue))
    return family
