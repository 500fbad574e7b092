"""Do more processors help? Article 4's measurement: 10,000 strings, and the MD5 of each."""

import random
import string
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from rota.measure.reports.report import Figures, Lines, Result, Series
from rota_lab.experiment import Experiment
from rota_lab.queue import Trial
from rota_lab.strategy import Job
from rota_lab.work import md5

SIZE = 50
"""Characters of a string, as in the article."""

SEED = 2013


@dataclass(frozen=True, slots=True)
class Drained:
    """How so many processes worked the rows.

    Attributes:
        seconds: From the start of the processes to the end of the last.
        worked: How many rows each process has worked.
        twice: How many rows were worked more than once.
        more: How often a row was worked that had been worked before.
        lost: How many rows no process has worked.
        deadlocks: How often a process was a deadlock's victim.
    """

    processes: int
    seconds: float
    worked: tuple[int, ...]
    twice: int
    more: int
    lost: int
    deadlocks: int


class Parallel(Experiment[Drained]):
    """Rows are worked by 1, 2, 4 and 8 processes."""

    name = "parallel"
    question = "Do more processors help?"
    summary = (
        "Has 1, 2, 4 and 8 processes work the same rows, each with the MD5 of 50 characters."
        " Draws the time until all are done, rows per process, and rows that were worked twice."
    )
    see = (
        "A design that lets workers work at the same time gets faster with more of them, until the"
        " cores or the disk are full. A design that makes workers wait for each other stays where it"
        " is, however many there are. So does a design that hands rows out twice, because every"
        " worker does all the work; the second chart shows which it is."
    )
    article = 4
    said = (
        "Select and delete: one process takes 63.8 s for 10,000 rows; two take 64.8 s, and each of"
        " them has worked all 10,000. Select for update: two take 63.5 s, with 5,000 rows each."
        " Marking rows with the backend's pid: 126.6 s with two, 123.4 s with four. Advisory locks:"
        " 62.3 s with two, 30.9 s with four, 14.7 s with eight, evenly shared."
    )
    full = {"rows": 10_000, "processes": 8}
    quick = {"rows": 100, "processes": 2}

    def samples(self, settings: Mapping[str, float]) -> int:
        return len(_steps(settings))

    def measure(self, trial: Trial) -> Generator[Drained, None, None]:
        jobs = strings(int(trial.settings["rows"]))
        for processes in _steps(trial.settings):
            with trial.fresh() as queue, queue.workers(processes, md5, drain=True) as workers:
                queue.strategy.enqueue(jobs)
                counts = [0] * processes
                times: Counter[str] = Counter()
                deadlocks = 0
                began = workers.go()
                for told in workers.until_ended():
                    for number, report in enumerate(told):
                        counts[number] += len(report.worked)
                        times.update(text for _, text in report.worked)
                        deadlocks += len(report.deadlocks)
                ended = max(report.ended or 0.0 for report in told)
            yield Drained(
                processes=processes,
                seconds=ended - began,
                worked=tuple(counts),
                twice=sum(count > 1 for count in times.values()),
                more=times.total() - len(times),
                lost=len(jobs) - len(times),
                deadlocks=deadlocks,
            )

    def result(
        self, taken: Mapping[str, Sequence[Drained]], settings: Mapping[str, float]
    ) -> Result:
        del settings
        rows: dict[str, Figures] = {
            f"{name}, {drained.processes}": {
                "seconds": round(drained.seconds, 3),
                "rows_per_process": " ".join(map(str, drained.worked)),
                "rows_worked_twice": drained.twice,
                "rows_worked_again": drained.more,
                "rows_lost": drained.lost,
                "deadlocks": drained.deadlocks,
                "times_as_fast_as_one": round(all_of[0].seconds / drained.seconds, 2),
            }
            for name, all_of in taken.items()
            for drained in all_of
        }
        series = {}
        for name, drained in taken.items():
            at = tuple(float(run.processes) for run in drained)
            series[name] = Series("s", at, tuple(run.seconds for run in drained), "processes")
            series[f"{name}: worked again"] = Series(
                "rows", at, tuple(float(run.more) for run in drained), "processes"
            )
        return Result(
            figures={"runs": rows},
            series=series,
            charts=(
                Lines(
                    "Time until all rows are worked: falling means that more processes help",
                    "processes", "seconds", tuple(taken), spread=True,
                ),
                Lines(
                    "Rows that were worked although they had been worked before",
                    "processes", "rows", tuple(f"{name}: worked again" for name in taken),
                    {f"{name}: worked again": name for name in taken}, spread=True,
                ),
            ),
        )  # fmt: skip


def strings(count: int) -> list[Job]:
    """The article's rows: random strings, no two of them the same.

    The priority is how often the first character comes again right after it.
    """
    chance = random.Random(SEED)  # noqa: S311 - the same in each run
    found: dict[str, Job] = {}
    while len(found) < count:
        text = "".join(chance.choices(string.ascii_letters + string.digits, k=SIZE))
        found[text] = Job(text, SIZE - 1 - len(text.lstrip(text[0])))
    return list(found.values())


def _steps(settings: Mapping[str, float]) -> list[int]:
    """1, 2, 4 and so on, up to the setting."""
    most = int(settings["processes"])
    return [2**n for n in range(most.bit_length()) if 2**n <= most]
