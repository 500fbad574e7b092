"""What does a long transaction elsewhere do to a queue under steady load?

It should do nothing: throughput and latency of the last minute are those of the first, and no
dead rows gather.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rota.errors import ConfigError
from rota.measure.bench import tasks
from rota.measure.bench.figures import milliseconds, percentiles, ratio
from rota.measure.bench.holder import held
from rota.measure.bench.observer import Tables, observing
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import Course, Ran, Sample, Steady, arrivals, blocks_per_job, series
from rota.measure.bench.waiting import waiting
from rota.measure.reports.report import Bars, Figures, Lines, Result, Value
from rota.terminal.progress import Progress

WINDOW = 60.0
"""Seconds of the parts that are compared: the first minute and the last."""

LONG_AGO = 1e6
"""Seconds of delay that only a job without a call time can have."""

OPEN_JOBS = 100
"""Jobs that the open producer has enqueued."""


def hold(
    scratch: Scratch, course: Course, *, holder: bool, producer: bool, progress: Progress
) -> Result:
    """Run the load while another session holds a transaction open.

    Args:
        scratch: Where to make the database.
        course: The load.
        holder: Whether there is an open transaction; it begins before the load and ends after it.
        producer: Whether the open transaction has itself enqueued jobs, into the same queue.
        progress: Shows how far it is.

    Raises:
        ConfigError: `producer` on SQLite, where a writer that stays open stops all others.
    """
    if producer and not scratch.postgres:
        message = (
            "hold --producer needs PostgreSQL (--private, or --url): SQLite has one writer at a "
            "time, so no other producer could enqueue; run hold without --producer"
        )
        raise ConfigError(message)
    neighbours: Mapping[str, Figures] = {}
    if producer:
        with scratch.fresh() as url:
            neighbours = waiting(url, progress=progress)
    with (
        scratch.fresh() as url,
        observing(url, scratch) as observer,
        contextlib.ExitStack() as open_,
    ):
        at_the_end: Callable[[], int] | None = None
        if holder:
            connection = open_.enter_context(held(url))
            if producer:
                at_the_end = _enqueue(url, connection)
        before = observer.tables()
        ran = Steady(url, course, observer, progress).run(at_the_end)
        after = observer.tables()
        blocks_from = observer.blocks_from
    return _result(
        course, ran, before, after, neighbours, producer=producer, blocks_from=blocks_from
    )


def _enqueue(url: str, connection: Any) -> Callable[[], int]:
    """Enqueue in the open transaction; the returned function commits it and counts its jobs."""
    app = tasks.open_app(url)
    # Negative, unlike the keys of the producer's jobs, which are times.
    tasks.stamp.enqueue_many([(-1.0,)] * OPEN_JOBS, conn=connection)
    app.close()

    def commit() -> int:
        connection.commit()
        return OPEN_JOBS

    return commit


def _result(
    course: Course,
    ran: Ran,
    before: Tables,
    after: Tables,
    neighbours: Mapping[str, Figures],
    *,
    producer: bool,
    blocks_from: str | None,
) -> Result:
    samples = ran.samples
    window = min(WINDOW, course.seconds / 2)
    end = samples[-1].at if samples else 0.0
    first = _part([sample for sample in samples if sample.at - sample.span < window - 0.5])
    last = _part([sample for sample in samples if sample.at > end - window + 0.5])
    ratios = {name: ratio(_number(last[name]), _number(first[name])) for name in first}
    figures: dict[str, Any] = {
        "load": {**arrivals(ran), **({"blocks_from": blocks_from} if blocks_from else {})},
        "parts": {"first": first, "last": last},
        "last_to_first": {
            "window_seconds": window,
            **ratios,
            "p95_ratio_corrected": ratio(ratios["latency_p95_ms"], ratios["machine_ms"]),
        },
        # The open producer's transaction had ended when the workers had.
        **dead_rows(before, after, samples[-1].tables if producer and samples else after, ran),
        **neighbours,
    }
    if producer:
        late = [delay for delay in ran.last_delays if delay > LONG_AGO]
        figures["open_producer"] = {"jobs": OPEN_JOBS, "started_after_its_commit": len(late)}
    return Result(
        figures=figures, series=series(samples), charts=_charts(before, figures), notes=NOTES,
        stopped_by=ran.stopped_by,
    )  # fmt: skip


NOTES = (
    (
        "latency: from the call of enqueue to the start of the handler, carried by the jobs; the jobs "
        "of one batch share the moment of its call. The warm-up is in none of the parts."
    ),
    (
        "machine: the median time of a fixed piece of plain Python, run four times a second in the "
        "observing process. Its ratio is the machine's own; p95_ratio_corrected is the ratio of "
        "latency_p95_ms divided by it. blocks_per_job: blocks of the buffer cache that the database "
        "touched, for enqueueing and running; it does not depend on the machine's speed."
    ),
    (
        "dead rows: `made` counts row versions that died (n_tup_upd + n_tup_del of the statistics, "
        "exact and cumulative), read after all workers had ended; `now` is n_dead_tup, an estimate "
        "that vacuum and TRUNCATE set back, read while the transaction was still open."
    ),
)


def _part(samples: Sequence[Sample]) -> dict[str, Value]:
    seconds = sum(sample.span for sample in samples)
    delays = [delay for sample in samples for delay in sample.delays]
    claims = [claim for sample in samples for claim in sample.claims]
    found = percentiles(delays)
    return {
        "throughput": round(sum(sample.settled for sample in samples) / seconds, 1)
        if seconds
        else None,
        "latency_p50_ms": found["p50_ms"],
        "latency_p95_ms": found["p95_ms"],
        "latency_p99_ms": found["p99_ms"],
        "claim_p50_ms": milliseconds(claims, 0.5),
        "claim_p95_ms": milliseconds(claims, 0.95),
        "blocks_per_job": blocks_per_job(samples),
        "machine_ms": milliseconds([piece for sample in samples for piece in sample.pieces], 0.5),
    }


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) else None


def dead_rows(before: Tables, after: Tables, now: Tables, ran: Ran) -> dict[str, Figures]:
    """How many row versions died; nothing on SQLite, which has none."""
    if None in {before.made, before.log_made, after.made, after.log_made, now.dead}:
        return {}
    made, dead, jobs = (after.made or 0) - (before.made or 0), now.dead or 0, ran.settled
    return {
        "dead_rows": {
            "job_log_made": (after.log_made or 0) - (before.log_made or 0),
            "job_log_now": now.log_dead,
            "all_tables_made": made,
            "all_tables_now": dead,
            "all_tables_made_per_1000_jobs": round(1000 * made / jobs, 3) if jobs else None,
            "all_tables_now_per_1000_jobs": round(1000 * dead / jobs, 3) if jobs else None,
        }
    }


def _charts(before: Tables, figures: dict[str, Any]) -> tuple[Lines | Bars, ...]:
    time = "seconds since the load began"
    charts: list[Lines | Bars] = [
        Lines("Throughput stays where the producer puts it", time, "jobs per second",
              ("offered", "enqueued", "completed")),
        Lines("No backlog grows", time, "jobs enqueued and not settled", ("depth",)),
        Lines("Jobs start as soon at the end as at the beginning", time,
              "milliseconds from enqueue to start", ("latency p50", "latency p95")),
        Lines("A claim takes no longer", time, "milliseconds", ("claim p50", "claim p95")),
    ]  # fmt: skip
    if before.made is not None:
        charts += [
            Lines("No dead rows in the job log, and few elsewhere: vacuum could not remove them", time, "rows",
                  ("dead rows in the job log", "dead rows in all tables")),
            Lines("The job log gives its space back", time, "megabytes",
                  ("size of the job log", "size of all tables")),
            Lines("How long the oldest transaction has been open", time, "seconds",
                  ("oldest transaction",)),
        ]  # fmt: skip
    if "another_producer" in figures:
        names = {"beside_open": "beside an open producer", "alone": "alone"}
        found = figures["another_producer"]
        charts.append(
            Bars(
                "No producer waits for another's commit", "milliseconds",
                {label: {"p50": found[name]["p50_ms"], "p99": found[name]["p99_ms"]}
                 for name, label in names.items()},
            )
        )  # fmt: skip
    return tuple(charts)
