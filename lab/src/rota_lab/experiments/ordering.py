"""How far from first in, first out? Article 5's measurement: the protocol, and Diff."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from rota.measure.reports.report import Bars, Figures, Result, Series
from rota_lab.experiment import Experiment
from rota_lab.expiry import EXPIRY, QUICK_EXPIRY
from rota_lab.protocol import BEGUN, Noting, make_protocol, read_protocol, until_done
from rota_lab.queue import Trial
from rota_lab.strategy import Job

BOUNDED = 70
"""What the article found that no Diff exceeds, with optimistic locking and a window of N."""

CLASSES = {
    "0": 0, "1 to 5": 5, "6 to 20": 20, "21 to 70": BOUNDED, "71 to 1,000": 1000,
    "more than 1,000": None,
}  # fmt: skip
"""Names of classes of Diff, with the largest one that is in it."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """The numbers of the jobs, in the order of the protocol; a job may stand there again.

    Job number i was enqueued as the i-th.
    """

    jobs: int
    sequence: tuple[int, ...]


class Ordering(Experiment[Protocol]):
    """Many workers, and a table that says in which order they took the jobs."""

    name = "ordering"
    question = "How far from first in, first out?"
    summary = (
        "Has every worker make an entry in a protocol when it fetches a job, as article 5 does."
        " Draws how far the entries are from the order of enqueueing, and jobs with several entries."
    )
    see = (
        "Diff is the article's: for the i-th entry of the protocol, in the order of its ids, it is"
        " |i - number of the job|; 0 everywhere means that there was no reordering. With the"
        " article's example, jobs 1 2 4 7 3 6 5, it is 0 0 1 3 2 0 2. As in the article, entries of"
        " jobs that were taken again count too, and move all later entries: a design that repeats"
        " jobs has large Diffs. Designs that take the first free job stay within about the number of"
        " workers. A random pick from a window goes further. A design that claims in batches goes as"
        " far as its batches are large: while one worker works through its batch, another is already"
        " at jobs after it. Rota's order within a queue is strict with one worker."
    )
    article = 5
    said = (
        "10,000 jobs, 10 workers, MySQL on c4.large. Beanstalkd: the biggest offset is 6, with very"
        " few cases. Laravel with one attempt to delete runs 11,800 jobs instead of 10,000, so that"
        " the reordering is high; with five attempts it is quite small, very similar to Beanstalkd."
        " Optimistic locking with a window of 1: very similar, with slightly more jobs shifted."
        " With a window of N: slightly higher, but bounded by 70 in all 10 test runs."
    )
    variants = ("laravel-retry", "laravel-optimistic-first")
    full = {"jobs": 10_000, "workers": 10, "patience": 100, **EXPIRY}
    quick = {"jobs": 60, "workers": 2, "patience": 5, **QUICK_EXPIRY}

    def samples(self, settings: Mapping[str, float]) -> int:
        del settings
        return 1

    def measure(self, trial: Trial) -> Generator[Protocol, None, None]:
        count = int(trial.settings["jobs"])
        with trial.fresh() as queue:
            make_protocol(queue.location)
            queue.strategy.enqueue([Job(str(number)) for number in range(1, count + 1)])
            work = Noting(queue.location)
            with queue.workers(int(trial.settings["workers"]), work) as workers:
                workers.go()
                for _ in until_done(queue.strategy, trial.settings["patience"]):
                    workers.tell()
                workers.stop()
            entries = read_protocol(queue.location)
        yield Protocol(count, tuple(int(entry.job) for entry in entries if entry.what == BEGUN))

    def result(
        self, taken: Mapping[str, Sequence[Protocol]], settings: Mapping[str, float]
    ) -> Result:
        del settings
        figures: dict[str, Figures] = {}
        series: dict[str, Series] = {}
        shares: dict[str, dict[str, float]] = {name: {} for name in CLASSES}
        times: dict[str, dict[str, float]] = {}
        for name, [protocol] in ((name, some) for name, some in taken.items() if some):
            diff = diffs(protocol.sequence)
            executions = runs(protocol.sequence)
            figures[name] = {
                "entries": len(protocol.sequence),
                "largest_diff": max(diff, default=None),
                "mean_diff": round(sum(diff) / len(diff), 2) if diff else None,
                "in_place_percent": _percent(diff.count(0), len(diff)),
                "jobs_taken_again": sum(executions.values()) - executions.get(1, 0),
                "most_often": max(executions, default=0),
                "jobs_never_taken": protocol.jobs - sum(executions.values()),
            }
            series[f"{name}: diff"] = _histogram(Counter(diff), "entries", "Diff")
            series[f"{name}: executions"] = _histogram(executions, "jobs", "executions")
            label = f"{name} (at most {max(diff, default=0):,})"
            for kind, count in classes(diff).items():
                shares[kind][label] = 100 * count / max(1, len(diff))
            for often, count in executions.items():
                if often > 1:
                    times.setdefault(f"{often} times", {})[name] = float(count)
        repeated = {key: times[key] for key in sorted(times, key=lambda key: int(key.split()[0]))}
        charts = [
            Bars(
                "Diff: the more of a bar is in the first colours, the closer to the order",
                "percent of the entries", shares, stacked=True,
            )
        ]  # fmt: skip
        if repeated:
            charts.append(
                Bars("Jobs that were taken more than once, and how often", "jobs", repeated, True)
            )
        notes = () if repeated else ("No job was taken more than once, so there is no such chart.",)
        return Result(
            figures={"runs": figures}, series=series, charts=tuple(charts), notes=notes
        )  # fmt: skip


def diffs(sequence: Sequence[int]) -> list[int]:
    """The article's Diff: for each entry how far its position is from its job's, both from 1."""
    return [abs(position - job) for position, job in enumerate(sequence, 1)]


def runs(sequence: Sequence[int]) -> Counter[int]:
    """How many jobs were taken once, twice and so on."""
    return Counter(Counter(sequence).values())


def classes(diff: Sequence[int]) -> dict[str, int]:
    """How many Diffs are in each class."""
    found = dict.fromkeys(CLASSES, 0)
    for value in diff:
        name = next(name for name, most in CLASSES.items() if most is None or value <= most)
        found[name] += 1
    return found


def _histogram(counts: Counter[int], unit: str, x_unit: str) -> Series:
    at = sorted(counts)
    return Series(unit, tuple(map(float, at)), tuple(float(counts[x]) for x in at), x_unit)


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
