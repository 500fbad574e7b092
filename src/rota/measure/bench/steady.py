"""A steady load: one producer at a fixed rate, workers, and a look at everything once a second.

What each look finds out is what happened since the one before, told by the processes themselves;
nothing is worked out afterwards from totals.
"""

import contextlib
import signal
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rota.measure.bench.crew import Crew, Plan, Told
from rota.measure.bench.figures import milliseconds, ratio
from rota.measure.bench.observer import Observer, Tables
from rota.measure.bench.producer import Load, Producers, Sent
from rota.measure.bench.witness import piece
from rota.measure.reports.report import Figures, Series
from rota.terminal.progress import Progress

PATIENCE = 30.0
"""Seconds that the workers have for what is left when the producer has ended."""
STARTING, ENDING = 0.5, 2.0
"""Seconds that a process takes to start, and all of them to end; rough, for estimates."""

# Windows has no SIGHUP.
ENDS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: what happened in the `span` seconds before `at`, and how things stand.

    Attributes:
        at: Seconds since the load began.
        due: Jobs that the rate demanded.
        enqueued: Jobs that were enqueued.
        settled: Jobs that were settled.
        depth: Jobs that are enqueued and not settled.
        delays: From the call of enqueue to the handler's start, in seconds, for each job started.
        claims: Seconds that each claim took that gave jobs.
        memory: Bytes of all worker processes.
        cpu: Seconds of processor time of all worker processes.
        pieces: Seconds that a fixed piece of work took here, several times.
        blocks: Blocks that the database touched; `None` where it is not known.
    """

    at: float
    span: float
    due: float
    enqueued: int
    settled: int
    depth: int
    delays: Sequence[float]
    claims: Sequence[float]
    memory: int
    cpu: float
    tables: Tables
    pieces: Sequence[float]
    blocks: int | None


@dataclass(slots=True)
class Ran:
    """The samples of a load, in their order.

    Attributes:
        began: When it began, in seconds since the epoch.
        left: Jobs that were enqueued and not settled in the end.
        enqueued: All jobs of the producer, those of the warm-up and the end too.
        settled: All jobs that were settled.
        last_delays: Delays of the jobs that started after the producer's end.
        stopped_by: What ended it early, such as "Ctrl-C" or "SIGTERM".
    """

    began: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    left: int = 0
    enqueued: int = 0
    settled: int = 0
    last_delays: list[float] = field(default_factory=list)
    stopped_by: str | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """How long and how strong; `warm_up` seconds before the first sample, all in seconds."""

    seconds: float
    rate: float
    batch: int
    workers: int = 1
    keep: bool = True
    warm_up: float = 2.0
    every: float = 1.0

    @property
    def expected(self) -> float:
        """About how many seconds it takes, with the start of the processes and their end."""
        return self.warm_up + self.seconds + STARTING * (self.workers + 1) + ENDING


class Steady:
    """Runs a course once."""

    def __init__(self, url: str, course: Course, observer: Observer, progress: Progress) -> None:
        self._course = course
        self._observer = observer
        self._progress = progress
        self._crew = Crew(Plan(url, keep=course.keep), course.workers)
        self._producers = Producers(Load(url, course.rate, course.batch))
        self._looked = 0.0
        self._cpu = 0.0
        self._pieces: list[float] = []
        self._blocks: int | None = None
        self.ran = Ran()

    def run(self, at_the_end: Callable[[], int] | None = None) -> Ran:
        """Run it; Ctrl-C ends it early, and what was measured by then is kept.

        `at_the_end` is called after the producer has ended, while the workers go on; it says how
        many jobs it has made available besides.
        """
        course, ran = self._course, self.ran
        self._progress.expect(course.expected)
        self._progress.begin("steady load", course.warm_up + course.seconds)
        with self._crew, self._producers:
            self._crew.go()
            self._producers.go()
            with _stoppable(self._stop):
                self._measure()
            self._count(self._producers.stop(), [])
            if at_the_end is not None:
                ran.enqueued += at_the_end()
            self._finish(3.0 if ran.stopped_by else PATIENCE)
            ran.last_delays += self._count([], self._crew.stop())
            ran.left = ran.enqueued - ran.settled
        return ran

    def _stop(self, by: str) -> None:
        self.ran.stopped_by = by

    def _measure(self) -> None:
        course, ran = self._course, self.ran
        started = time.time()
        ran.began = started + course.warm_up
        self._wait(started, ran.began)
        self._look(sample=False)
        for number in range(1, max(1, round(course.seconds / course.every)) + 1):
            self._wait(started, ran.began + number * course.every)
            if ran.stopped_by:
                break
            self._look(sample=True)

    def _wait(self, started: float, until: float) -> None:
        while (left := until - time.time()) > 0 and not self.ran.stopped_by:
            time.sleep(min(left, 0.25))
            self._pieces.append(piece())
            self._progress.at(time.time() - started)

    def _look(self, *, sample: bool) -> None:
        sent, told = self._producers.tell(), self._crew.tell()
        ran = self.ran
        now = time.time() - ran.began
        delays = self._count(sent, told)
        cpu = sum(one.cpu for one in told)
        blocks = self._observer.blocks()
        if sample:
            ran.samples.append(
                Sample(
                    at=now,
                    span=now - self._looked,
                    due=sum(one.due for one in sent),
                    enqueued=sum(one.jobs for one in sent),
                    settled=sum(one.settled for one in told),
                    depth=ran.enqueued - ran.settled,
                    # Four bytes each: a load may go on for hours.
                    delays=array("f", delays),
                    claims=array("f", (took for one in told for _, _, took in one.claims)),
                    memory=sum(one.memory for one in told),
                    cpu=cpu - self._cpu,
                    tables=self._observer.tables(),
                    pieces=array("f", self._pieces),
                    blocks=increase(self._blocks, blocks),
                )
            )
        self._looked, self._cpu, self._blocks = now, cpu, blocks
        self._pieces.clear()

    def _count(self, sent: list[Sent], told: list[Told]) -> list[float]:
        self.ran.enqueued += sum(one.jobs for one in sent)
        self.ran.settled += sum(one.settled for one in told)
        return [at - called for one in told for called, at in one.starts]

    def _finish(self, patience: float) -> None:
        deadline = time.time() + patience
        while self.ran.settled < self.ran.enqueued and time.time() < deadline:
            time.sleep(0.05)
            self.ran.last_delays += self._count([], self._crew.tell())


@contextlib.contextmanager
def _stoppable(stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C, SIGTERM or SIGHUP; the next one does what it always does.

    An exception would come in the middle of a look, and the look's counts would be lost.
    """
    before = {number: signal.getsignal(number) for number in ENDS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def first(number: int, _frame: object) -> None:
        restore()
        stop("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()


def increase(before: int | None, after: int | None) -> int | None:
    """What was added; `None` where it is not known, or somebody has set the counter back."""
    if before is None or after is None or after < before:
        return None
    return after - before


def blocks_per_job(samples: Sequence[Sample]) -> float | None:
    """Blocks that the database touched for each job that was settled meanwhile."""
    known = [one.blocks for one in samples if one.blocks is not None]
    settled = sum(one.settled for one in samples)
    return round(sum(known) / settled, 2) if settled and len(known) == len(samples) else None


def arrivals(ran: Ran) -> Figures:
    """How many jobs came, next to how many should have come, and what became of them."""
    samples = ran.samples
    end = samples[-1].at if samples else 0.0
    due, sent = sum(one.due for one in samples), sum(one.enqueued for one in samples)
    return {
        "seconds": round(end, 1),
        "offered_rate": round(due / end, 1) if end else None,
        "enqueued_rate": round(sent / end, 1) if end else None,
        "enqueued_to_offered": ratio(sent, due),
        "jobs_enqueued": ran.enqueued,
        "jobs_settled": ran.settled,
        "jobs_left_over": ran.left,
    }


def series(samples: Sequence[Sample]) -> dict[str, Series]:
    """The samples as series over the time."""
    at = tuple(round(one.at, 2) for one in samples)

    def over(unit: str, values: Sequence[float | None]) -> Series:
        return Series(unit, at, tuple(values))

    def megabytes(values: Sequence[int | None]) -> list[float | None]:
        return [None if one is None else round(one / 1e6, 3) for one in values]

    found = {
        "offered": over("jobs/s", [round(one.due / one.span, 1) for one in samples]),
        "enqueued": over("jobs/s", [round(one.enqueued / one.span, 1) for one in samples]),
        "completed": over("jobs/s", [round(one.settled / one.span, 1) for one in samples]),
        "depth": over("jobs", [one.depth for one in samples]),
        "latency p50": over("ms", [milliseconds(one.delays, 0.5) for one in samples]),
        "latency p95": over("ms", [milliseconds(one.delays, 0.95) for one in samples]),
        "claim p50": over("ms", [milliseconds(one.claims, 0.5) for one in samples]),
        "claim p95": over("ms", [milliseconds(one.claims, 0.95) for one in samples]),
        "workers' memory": over("MB", megabytes([one.memory for one in samples])),
        "workers' processor": over("%", [round(100 * one.cpu / one.span, 1) for one in samples]),
        "machine": over("ms", [milliseconds(one.pieces, 0.5) for one in samples]),
        "size of all tables": over("MB", megabytes([one.tables.bytes for one in samples])),
    }
    if samples and samples[0].tables.dead is not None:
        found |= {
            "blocks per job": over("blocks", [blocks_per_job([one]) for one in samples]),
            "size of the job log": over("MB", megabytes([one.tables.log_bytes for one in samples])),
            "dead rows in the job log": over("rows", [one.tables.log_dead for one in samples]),
            "dead rows in all tables": over("rows", [one.tables.dead for one in samples]),
            "oldest transaction": over(
                "s", [None if (age := one.tables.oldest) is None else round(age, 1)
                      for one in samples]
            ),
        }  # fmt: skip
    return found
