"""What does a long transaction do? Article 1's test bench: a producer, workers, a long-runner."""

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rota.measure.reports.report import Figures, Lines, Result, Series
from rota_lab.databases import Database
from rota_lab.experiment import Experiment
from rota_lab.queue import Trial


@dataclass(frozen=True, slots=True)
class Sample:
    """One look, an interval after the one before.

    Attributes:
        beside: Whether a long transaction is open.
        at: Seconds since the load began.
        enqueued: Jobs that were enqueued in the interval.
        worked: Jobs that were worked in the interval.
        depth: Jobs that are enqueued and not worked.
        claims: How long each claim of the interval took, in seconds, in order of length.
        dead: Dead tuples in all tables.
        oldest: Age of the oldest transaction, in seconds.
    """

    beside: bool
    at: float
    enqueued: int
    worked: int
    depth: int
    claims: tuple[float, ...]
    dead: int | None
    oldest: float | None


class Mvcc(Experiment[Sample]):
    """A steady load, without a long transaction and beside one."""

    name = "mvcc"
    question = "What does a long transaction do?"
    summary = (
        "Lets a producer enqueue at a fixed rate, while one more session sits idle in a transaction."
        " Draws, over time, jobs in the queue, claim times, dead tuples and the transaction's age."
    )
    see = (
        "Without a long transaction all lines are flat: vacuum removes what workers have deleted."
        " Beside one, dead tuples grow with every job that is worked. A design that looks for the"
        " first live row through an index walks over all of them, so its claims take longer and"
        " longer. When they take too long for the rate, the queue grows, and it never recovers"
        " while the transaction is open. A design whose claims meet no dead rows stays flat."
    )
    article = 1
    said = (
        "At about 50 jobs a second, Que's median lock time is below 0.01 s at first and above 0.1 s,"
        " 15 times as long, after an hour beside a long transaction. By then there are 60,000 jobs"
        " in the queue and nearly 100,000 dead tuples. With last_job_id it holds out about twice as"
        " long, with 30,000 jobs after an hour, and then falls off the same cliff."
    )
    databases = (Database.POSTGRES,)
    # As many jobs as in the article's hour, in three minutes.
    full = {"rate": 1000, "workers": 4, "seconds": 180, "every": 1}
    quick = {"rate": 50, "workers": 1, "seconds": 1, "every": 0.5}

    def samples(self, settings: Mapping[str, float]) -> int:
        return 2 * _count(settings)

    def measure(self, trial: Trial) -> Generator[Sample, None, None]:
        for beside in (False, True):
            yield from _load(trial, beside=beside)

    def result(
        self, taken: Mapping[str, Sequence[Sample]], settings: Mapping[str, float]
    ) -> Result:
        del settings
        figures: dict[str, Figures] = {}
        series: dict[str, Series] = {}
        drawn: dict[tuple[str, bool], list[str]] = {}
        for name, samples in taken.items():
            for beside in (False, True):
                some = [sample for sample in samples if sample.beside is beside]
                if not some:
                    continue
                how = "beside a long transaction" if beside else "alone"
                figures[f"{name}, {how}"] = _figures(some)
                for quantity, values in _series(some).items():
                    key = f"{name}, {how}: {quantity}"
                    series[key] = values
                    drawn.setdefault((quantity, beside), []).append(key)
        charts = [
            Lines(
                f"{QUANTITIES[quantity][0]} {'beside a long transaction' if beside else 'without one'}"
                f"{QUANTITIES[quantity][1] if beside else ': flat'}",
                "seconds", series[keys[0]].unit, tuple(keys),
                {key: key.partition(", ")[0] for key in keys},
                spread=True,
            )
            for quantity in QUANTITIES
            for beside in (True, False)
            if (keys := drawn.get((quantity, beside)))
        ]  # fmt: skip
        return Result(figures={"runs": figures}, series=series, charts=tuple(charts))


QUANTITIES = {
    "depth": ("Jobs in the queue", ": a rising design does not keep up"),
    "claim p50": ("Median time of a claim", ": a rising design walks over dead rows"),
    "claim p95": (
        "Time of slow claims (95th percentile)",
        ": a rising design walks over dead rows",
    ),
    "dead tuples": ("Dead tuples", ": they pile up with each job that is worked"),
    "oldest transaction": ("Age of the oldest transaction", ": it is never over"),
}
"""What is drawn, each in charts of its own, and what to see beside a long transaction."""


def _load(trial: Trial, *, beside: bool) -> Generator[Sample, None, None]:
    settings = trial.settings
    with contextlib.ExitStack() as stack:
        queue = stack.enter_context(trial.fresh())
        if beside:
            stack.enter_context(queue.long_transaction())
        workers = stack.enter_context(queue.workers(int(settings["workers"])))
        producer = stack.enter_context(queue.producer(settings["rate"]))
        workers.go()
        producer.go()
        began = time.monotonic()
        enqueued = 0
        worked: set[str] = set()
        for number in range(1, _count(settings) + 1):
            time.sleep(max(0.0, began + number * settings["every"] - time.monotonic()))
            # Worked jobs first: they cannot be more than were enqueued by then.
            told = workers.tell()
            sent = producer.sent()
            enqueued += sent
            texts = [text for report in told for _, text in report.worked]
            worked.update(texts)
            look = queue.look()
            yield Sample(
                beside=beside,
                at=round(time.monotonic() - began, 2),
                enqueued=sent,
                worked=len(texts),
                depth=enqueued - len(worked),
                claims=tuple(sorted(took for report in told for took in report.claims)),
                dead=look.dead,
                oldest=look.oldest,
            )


def _count(settings: Mapping[str, float]) -> int:
    return max(1, round(settings["seconds"] / settings["every"]))


def _series(samples: Sequence[Sample]) -> dict[str, Series]:
    at = tuple(sample.at for sample in samples)
    return {
        "depth": Series("jobs", at, tuple(float(sample.depth) for sample in samples)),
        "claim p50": Series("ms", at, tuple(_share(sample.claims, 0.5) for sample in samples)),
        "claim p95": Series("ms", at, tuple(_share(sample.claims, 0.95) for sample in samples)),
        "dead tuples": Series("tuples", at, tuple(sample.dead for sample in samples)),
        "oldest transaction": Series("s", at, tuple(sample.oldest for sample in samples)),
        "enqueued": Series("jobs", at, tuple(float(sample.enqueued) for sample in samples)),
        "worked": Series("jobs", at, tuple(float(sample.worked) for sample in samples)),
    }


def _figures(samples: Sequence[Sample]) -> Figures:
    """The first quarter next to the last."""
    quarter = max(1, len(samples) // 4)
    first, last = samples[:quarter], samples[-quarter:]
    before, after = _claim(first), _claim(last)
    return {
        "claim_p50_first_ms": before,
        "claim_p50_last_ms": after,
        "last_to_first": round(after / before, 2) if before and after else None,
        "jobs_in_queue_at_the_end": samples[-1].depth,
        "most_jobs_in_queue": max(sample.depth for sample in samples),
        "dead_tuples_at_the_end": samples[-1].dead,
        "enqueued": sum(sample.enqueued for sample in samples),
        "worked": sum(sample.worked for sample in samples),
    }


def _claim(samples: Sequence[Sample]) -> float | None:
    claims = [took for sample in samples for took in sample.claims]
    return round(median(claims) * 1000, 3) if claims else None


def _share(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share lies, in milliseconds."""
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 3)
