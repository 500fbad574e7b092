"""How fast do workers empty a queue of jobs that do nothing?"""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan, Told, workers_of
from rota.measure.bench.figures import Curve, Step, ends_of_parts, ratio, tenths
from rota.measure.bench.holder import held
from rota.measure.bench.instruments import HEADERS, NOTHING
from rota.measure.bench.observer import PAGE, Observer, Wal, observing
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.witness import Witness, increases, medians
from rota.measure.reports.report import Bars, Figures, Lines, Result, Series, Value
from rota.terminal.progress import Progress

if TYPE_CHECKING:
    from rota.app.task import Task

CHUNK = 100_000_000
"""Bytes of args in one `enqueue_many`, and in all jobs of one run."""

MOST_LINES = 8
"""Runs that a reader can tell apart in one chart."""

LOOK = 0.05
"""Seconds between two looks at how far the workers are."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is run.

    Attributes:
        args: Bytes of each job's args, about; 0 for a number, the smallest args.
        held: Whether another session holds the horizon from before the first enqueue to the end.
        instrument: What the app is instrumented by.
    """

    jobs: int
    workers: int = 1
    executor: str = "loop"
    args: int = 0
    keep: bool = True
    held: bool = False
    concurrency: int = 32
    instrument: str = NOTHING

    @property
    def label(self) -> str:
        """A name that differs from those of the other runs."""
        words = [
            workers_of(self.workers),
            self.executor,
            "kept" if self.keep else "not kept",
        ]
        if self.args:
            words.append(f"{self.args:,} B")
        if self.held:
            words.append("held")
        if self.instrument != NOTHING:
            words.append(f"with {self.instrument}")
        return ", ".join(words)


def drain(scratch: Scratch, courses: Iterable[Course], progress: Progress) -> Result:
    """Run each course on a database of its own, and compare it with the first."""
    runs: dict[str, Figures] = {}
    series: dict[str, Series] = {}
    rates: dict[str, float] = {}
    notes = [NOTE_TENTHS, NOTE_WITNESSES]
    for course in courses:
        run = _run(scratch, course, progress)
        rates[course.label] = run.rate
        first = next(iter(rates.values()))
        runs[course.label] = {**run.figures, "ratio_to_first_run": ratio(run.rate, first)}
        ends = tuple(10.0 * (n + 1) for n in range(len(run.tenths)))
        series[course.label] = Series("jobs/s", ends, run.tenths, "% of jobs")
        series[f"machine: {course.label}"] = Series("ms", ends, run.machine, "% of jobs")
        if run.blocks:
            series[f"blocks: {course.label}"] = Series(
                "blocks/job", ends, run.blocks, "% of jobs"
            )  # fmt: skip
    if scratch.postgres:
        notes.append(NOTE_WAL)
    charts: list[Lines | Bars] = []
    if len(rates) <= MOST_LINES:
        charts.append(
            Lines(
                "Throughput over the run: flat means that work already done does not slow it down",
                "jobs settled, % of all", "jobs per second", tuple(rates),
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
NOTE_WITNESSES = (
    "machine_slowest_to_fastest_tenth: the same for a fixed piece of plain Python, timed in the "
    "observing process every 50 ms; the median of each tenth counts. Where it is about "
    "slowest_to_fastest_tenth, the tenths vary with the machine. Where all cores are busy, the "
    "workers slow it down too. Blocks are those of the buffer cache that running and settling "
    "touched; they do not depend on the machine's speed."
)
NOTE_WAL = (
    "WAL is that of the whole server, from the first enqueue to the last settlement's commit. "
    "After a checkpoint the first change of each page writes a full image of it, so a checkpoint "
    "is made before (where the role may), and none is due within the five minutes after it. "
    "full_page_share says how much of the WAL images may be at most: they may be shorter than a "
    "page. With few jobs it is large."
)


class Run(NamedTuple):
    """The result of a course: figures, and measurements by tenths of the jobs.

    Attributes:
        rate: Jobs per second of the whole run.
        tenths: Jobs per second of each tenth.
        machine: Milliseconds that the fixed piece of work took.
        blocks: Blocks touched per job; empty where they are not known.
    """

    rate: int
    tenths: tuple[float, ...]
    machine: tuple[float | None, ...]
    blocks: tuple[float, ...]
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
        plan = Plan(
            url, keep=course.keep, concurrency=course.concurrency, instrument=course.instrument
        )
        witness = Witness(observer)
        touched = observer.blocks()
        with Crew(plan, course.workers) as crew:
            witness.look_at_blocks()
            told = run_dry(crew, jobs, f"drain: {course.label}", progress, witness.look)
            witness.look_at_blocks()
            told += crew.stop()
        run = _drained(jobs, told, witness)
        touched_then = observer.blocks()
        figures: dict[str, Value] = {
            "jobs": jobs,
            "workers": course.workers,
            "executor": course.executor,
            "args_bytes": size,
            "completed_jobs_kept": course.keep,
            "horizon_held": course.held,
            "with": course.instrument,
            **_oldest(observer),
            "concurrency": course.concurrency,
            **run.figures,
            **_blocks(observer, jobs, touched, touched_then),
            "enqueue_rate": round(jobs / seconds),
            **_wal("enqueue_", jobs, before, enqueued),
            # After the workers' end, when their sessions have reported everything.
            **_wal("run_", jobs, enqueued, last := observer.wal()),
            **_wal("", jobs, before, last),
        }
        return run._replace(figures=figures)


def _enqueue(url: str, course: Course, jobs: int, progress: Progress) -> int:
    """Enqueue the jobs; returns the bytes of the last job's args."""
    app = tasks.open_app(url)
    chunk = max(1, min(100_000, CHUNK // 10 // max(course.args, 1)))
    # {"load":"…"} has 11 bytes besides the text.
    text = "x" * max(0, course.args - 11)
    task: Task[..., Any, None] = {
        "loop": tasks.carry if course.args else tasks.noop,
        "thread": tasks.carry_in_thread,
        "process": tasks.carry_in_process,
    }[course.executor]
    task = task.using(headers=headers) if (headers := HEADERS.get(course.instrument)) else task
    number = course.executor == "loop" and not course.args
    for start in range(0, jobs, chunk):
        end = min(start + chunk, jobs)
        if number:
            task.enqueue_many((n,) for n in range(start, end))
        else:
            task.enqueue_many((text,) for _ in range(start, end))
        progress.at(end)
    app.close()
    return len(task.codec.encode((jobs - 1 if number else text,), {}))


def run_dry(
    crew: Crew, jobs: int, what: str, progress: Progress, look: Callable[[], None] | None = None
) -> list[Told]:
    """Let the workers run until they have settled `jobs` jobs; returns all their reports.

    `look` is called every twentieth of a second.
    """
    progress.begin(what, jobs)
    crew.go()
    told: list[Told] = []
    settled = 0
    while settled < jobs:
        time.sleep(LOOK)
        if look is not None:
            look()
        told += (news := crew.tell())
        settled += sum(report.settled for report in news)
        progress.at(settled)
    return told


def _drained(jobs: int, told: list[Told], witness: Witness) -> Run:
    workers = steps_of_workers(told)
    steps = [step for _, steps in workers for step in steps]
    began = min(began for began, _ in workers)
    seconds = max(at for at, _ in steps) - began
    parts = tenths(workers)
    ends = ends_of_parts([Curve(*worker) for worker in workers])
    pieces = medians(witness.pieces, began, ends)
    touched = increases(witness.blocks, began, ends) or []
    blocks = tuple(round(10 * count / jobs, 2) for count in touched)
    idle = max(report.idle_memory for report in told)
    rate = round(jobs / seconds)
    figures: dict[str, Value] = {
        "settled": sum(count for _, count in steps),
        "seconds": round(seconds, 3),
        "rate": rate,
        "rate_after_first_tenth": round(0.9 * jobs / sum(0.1 * jobs / part for part in parts[1:])),
        "slowest_to_fastest_tenth": ratio(min(parts), max(parts)),
        "slowest_to_fastest_tenth_after_first": ratio(min(parts[1:]), max(parts[1:])),
        "last_to_first_tenth": ratio(parts[-1], parts[0]),
        "worker_cpu_us_per_job": _processor(told),
        "machine_slowest_to_fastest_tenth": _slowest_to_fastest(pieces),
        "blocks_per_job_last_to_first_tenth": ratio(blocks[-1], blocks[0]) if blocks else None,
        "idle_memory_mb": round(idle / 1e6, 1),
        "memory_growth_mb": round((max(report.memory for report in told) - idle) / 1e6, 1),
    }
    machine = tuple(None if piece is None else round(piece * 1000, 4) for piece in pieces)
    return Run(rate, tuple(round(part) for part in parts), machine, blocks, figures)


def _processor(told: Iterable[Told]) -> float | None:
    """Microseconds of the workers' own processor time per job, from their first reports on."""
    reports: dict[int, list[Told]] = {}
    for report in told:
        reports.setdefault(report.worker, []).append(report)
    seconds = sum(each[-1].cpu - each[0].cpu for each in reports.values())
    jobs = sum(report.settled for each in reports.values() for report in each[1:])
    return round(1e6 * seconds / jobs, 1) if jobs else None


def _slowest_to_fastest(pieces: Sequence[float | None]) -> float | None:
    """The ratio of the machine's times; `None` if a tenth was too short for a look."""
    known = [piece for piece in pieces if piece is not None]
    return ratio(min(known), max(known)) if known and len(known) == len(pieces) else None


def _blocks(
    observer: Observer, jobs: int, before: int | None, after: int | None
) -> dict[str, Value]:
    """Blocks that running and settling touched, once the sessions have reported everything."""
    if before is None or after is None:
        return {}
    known = after >= before
    return {
        "run_blocks_per_job": round((after - before) / jobs, 2) if known else None,
        "blocks_from": observer.blocks_from,
    }


def steps_of_workers(told: Iterable[Told]) -> list[tuple[float, list[Step]]]:
    """When each worker began, and what it settled."""
    found: dict[int, tuple[float, list[Step]]] = {}
    for report in told:
        found.setdefault(report.worker, (report.began, []))[1].extend(report.settlements)
    return list(found.values())


def _oldest(observer: Observer) -> dict[str, Value]:
    """How long the horizon has been held: the age of the oldest transaction."""
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
