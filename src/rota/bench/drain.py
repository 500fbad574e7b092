"""How fast do workers empty a queue of jobs that do nothing?"""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.bench import tasks
from rota.bench.crew import Crew, Plan, Told
from rota.bench.figures import Step, ratio, tenths
from rota.bench.holder import held
from rota.bench.observer import PAGE, Observer, Wal, observing
from rota.bench.scratch import Scratch
from rota.reports.progress import Progress
from rota.reports.report import Bars, Figures, Lines, Result, Series, Value

if TYPE_CHECKING:
    from rota.task import Task

CHUNK = 100_000_000
"""Bytes of args in one `enqueue_many`, and in all jobs of one run."""

MOST_LINES = 8
"""Runs that can be told apart in one chart."""

LOOK = 0.05
"""Seconds between two looks at how far the workers are."""


@dataclass(frozen=True, slots=True)
class Course:
    """One of the runs: what is the same in all of them, and what differs.

    Attributes:
        args: Bytes of each job's args, about; 0 for a number, the smallest there is.
        held: Whether another session holds the horizon from before the first enqueue to the end.
    """

    jobs: int
    workers: int = 1
    executor: str = "loop"
    args: int = 0
    keep: bool = True
    held: bool = False
    concurrency: int = 32

    @property
    def label(self) -> str:
        """What tells it from the others."""
        words = [
            f"{self.workers} worker{'s' if self.workers > 1 else ''}",
            self.executor,
            "kept" if self.keep else "not kept",
        ]
        if self.args:
            words.append(f"{self.args:,} B")
        if self.held:
            words.append("held")
        return ", ".join(words)


def drain(scratch: Scratch, courses: Iterable[Course], progress: Progress) -> Result:
    """Run each course on a database of its own; each is compared with the first one."""
    runs: dict[str, Figures] = {}
    series: dict[str, Series] = {}
    rates: dict[str, float] = {}
    notes = [NOTE_TENTHS]
    for course in courses:
        run = _run(scratch, course, progress)
        rates[course.label] = run.rate
        first = next(iter(rates.values()))
        runs[course.label] = {**run.figures, "ratio_to_first_run": ratio(run.rate, first)}
        ends = tuple(10.0 * (n + 1) for n in range(len(run.tenths)))
        series[course.label] = Series("jobs/s", ends, run.tenths, "% of jobs")
    if scratch.postgres:
        notes.append(NOTE_WAL)
    charts: list[Lines | Bars] = []
    if len(rates) <= MOST_LINES:
        charts.append(
            Lines(
                "Throughput over the run: flat means that work already done does not slow it down",
                "jobs settled, % of all", "jobs per second", tuple(series),
            )
        )  # fmt: skip
    if len(rates) > 1:
        charts.append(Bars("Throughput of each run", "jobs per second", {"rate": rates}))
    return Result(
        figures={"runs": runs}, series=series, charts=tuple(charts), notes=tuple(notes)
    )  # fmt: skip


NOTE_TENTHS = (
    "rate: jobs / seconds from the first worker's session to the last settlement's commit; tenths "
    "of the jobs by the times at which settlements were written. The first tenth has the "
    "workers' start in it (and that of child processes), so rate and slowest ÷ fastest are given "
    "with and without it."
)
NOTE_WAL = (
    "WAL is that of the whole server, from the first enqueue to the last settlement's commit. "
    "After a checkpoint the first change of each page writes a full image of it, so a checkpoint "
    "is made before (where the role may), and none is due within the five minutes after it. "
    "full_page_share says how much of the WAL images may be at most: they may be shorter than a "
    "page. With few jobs it is large."
)


class Run(NamedTuple):
    """What came of a course: jobs per second, over all and by tenths, and the figures."""

    rate: int
    tenths: tuple[float, ...]
    figures: dict[str, Value]


def _run(scratch: Scratch, course: Course, progress: Progress) -> Run:
    jobs = min(course.jobs, max(1, CHUNK // max(course.args, 1)))
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(scratch.fresh())
        observer = stack.enter_context(observing(url, scratch))
        if course.held:
            stack.enter_context(held(url))
        observer.checkpoint()
        before = observer.wal()
        progress.begin(f"enqueue: {course.label}", jobs)
        began = time.perf_counter()
        size = _enqueue(url, course, jobs, progress)
        seconds = time.perf_counter() - began
        enqueued = observer.wal()
        plan = Plan(url, keep=course.keep, concurrency=course.concurrency)
        with Crew(plan, course.workers) as crew:
            told = run_dry(crew, jobs, f"drain: {course.label}", progress) + crew.stop()
        run = _drained(jobs, told)
        figures: dict[str, Value] = {
            "jobs": jobs,
            "workers": course.workers,
            "executor": course.executor,
            "args_bytes": size,
            "completed_jobs_kept": course.keep,
            "horizon_held": course.held,
            **_oldest(observer),
            "concurrency": course.concurrency,
            **run.figures,
            "enqueue_rate": round(jobs / seconds),
            **_wal("enqueue_", jobs, before, enqueued),
            # After the workers' end, when their sessions have reported all there is.
            **_wal("run_", jobs, enqueued, last := observer.wal()),
            **_wal("", jobs, before, last),
        }
        return run._replace(figures=figures)


def _enqueue(url: str, course: Course, jobs: int, progress: Progress) -> int:
    """Enqueue the jobs; the bytes of the last one's args."""
    app = tasks.open_app(url)
    chunk = max(1, min(100_000, CHUNK // 10 // max(course.args, 1)))
    # {"load":"…"} has 11 bytes besides the text.
    text = "x" * max(0, course.args - 11)
    task: Task[..., Any, None] = {
        "loop": tasks.carry if course.args else tasks.noop,
        "thread": tasks.carry_in_thread,
        "process": tasks.carry_in_process,
    }[course.executor]
    for start in range(0, jobs, chunk):
        end = min(start + chunk, jobs)
        if task is tasks.noop:
            task.enqueue_many((n,) for n in range(start, end))
        else:
            task.enqueue_many((text,) for _ in range(start, end))
        progress.at(end)
    app.close()
    return len(task.codec.encode((jobs - 1 if task is tasks.noop else text,), {}))


def run_dry(crew: Crew, jobs: int, what: str, progress: Progress) -> list[Told]:
    """Let the workers begin, until they have settled `jobs` jobs; all they told."""
    progress.begin(what, jobs)
    crew.go()
    told: list[Told] = []
    settled = 0
    while settled < jobs:
        time.sleep(LOOK)
        told += (news := crew.tell())
        settled += sum(one.settled for one in news)
        progress.at(settled)
    return told


def _drained(jobs: int, told: list[Told]) -> Run:
    steps: list[Step] = [step for one in told for step in one.settlements]
    began = min(one.began for one in told)
    seconds = max(at for at, _ in steps) - began
    parts = tenths(began, steps)
    idle = max(one.idle_memory for one in told)
    rate = round(jobs / seconds)
    figures: dict[str, Value] = {
        "settled": sum(count for _, count in steps),
        "seconds": round(seconds, 3),
        "rate": rate,
        "rate_after_first_tenth": round(0.9 * jobs / sum(0.1 * jobs / part for part in parts[1:])),
        "slowest_to_fastest_tenth": ratio(min(parts), max(parts)),
        "slowest_to_fastest_tenth_after_first": ratio(min(parts[1:]), max(parts[1:])),
        "last_to_first_tenth": ratio(parts[-1], parts[0]),
        "idle_memory_mb": round(idle / 1e6, 1),
        "memory_growth_mb": round((max(one.memory for one in told) - idle) / 1e6, 1),
    }
    return Run(rate, tuple(round(part) for part in parts), figures)


def _oldest(observer: Observer) -> dict[str, Value]:
    """For how long the horizon has really been held: the age of the oldest transaction."""
    tables = observer.tables()
    if tables.dead is None:
        return {}
    return {"oldest_transaction_s": None if tables.oldest is None else round(tables.oldest, 2)}


def _wal(phase: str, jobs: int, before: Wal | None, after: Wal | None) -> dict[str, Value]:
    if before is None or after is None:
        return {}
    written = after.bytes - before.bytes
    share = (after.images - before.images) * PAGE / written if written else 0.0
    return {
        f"{phase}wal_bytes_per_job": round(written / jobs, 1),
        f"{phase}full_page_share": round(min(1.0, share), 3),
    }
