"""A steady load: one producer at a fixed rate, workers, and a look at everything once a second.

Each look has what happened since the look before, as the processes report it; nothing is worked out
afterwards from totals.
"""

import contextlib
import signal
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rota.measure.bench.crew import Crew, Plan, Told
from rota.measure.bench.figures import milliseconds, ratio
from rota.measure.bench.observer import Observer, Tables
from rota.measure.bench.producer import Load, Producers, Sent
from rota.measure.bench.witness import piece
from rota.measure.reports.report import Figures, Series
from rota.terminal.progress import Progress
from rota.terminal.stopping import ENDS

PATIENCE = 30.0
"""Seconds that the workers have for the jobs that are left when the producer has ended."""
STARTING, ENDING = 0.5, 2.0
"""Seconds that a process takes to start, and all of them to end; rough, for estimates."""


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
        server: Those of the server's processes, by kind; `None` where they cannot be seen.
        transactions: Transactions of the database; `None` where it does not say.
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
    server: Mapping[str, float] | None
    transactions: int | None
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
    """How long and how heavy the load is; times in seconds, `warm_up` before the first sample."""

    seconds: float
    rate: float
    batch: int
    workers: int = 1
    keep: bool = True
    warm_up: float = 2.0
    every: float = 1.0

    @property
    def expected(self) -> float:
        """About how many seconds the course takes, with the start and the end of the processes."""
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
        self._server: Mapping[str, float] | None = None
        self._transactions: int | None = None
        self._pieces: list[float] = []
        self._blocks: int | None = None
        self.ran = Ran()

    def run(self, at_the_end: Callable[[], int] | None = None) -> Ran:
        """Run the load; Ctrl-C ends it early, and what was measured by then is kept.

        `at_the_end` is called after the producer has ended, while the workers go on; it returns how
        many further jobs it has made available.
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
        cpu = sum(report.cpu for report in told)
        blocks = self._observer.blocks()
        server = self._observer.processor()
        transactions = self._observer.transactions()
        if sample:
            ran.samples.append(
                Sample(
                    at=now,
                    span=now - self._looked,
                    due=sum(report.due for report in sent),
                    enqueued=sum(report.jobs for report in sent),
                    settled=sum(report.settled for report in told),
                    depth=ran.enqueued - ran.settled,
                    # Four bytes each: a load may go on for hours.
                    delays=array("f", delays),
                    claims=array("f", (took for report in told for _, _, took in report.claims)),
                    memory=sum(report.memory for report in told),
                    cpu=cpu - self._cpu,
                    server=increases(self._server, server),
                    transactions=increase(self._transactions, transactions),
                    tables=self._observer.tables(),
                    pieces=array("f", self._pieces),
                    blocks=increase(self._blocks, blocks),
                )
            )
        self._looked, self._cpu, self._blocks = now, cpu, blocks
        self._server, self._transactions = server, transactions
        self._pieces.clear()

    def _count(self, sent: list[Sent], told: list[Told]) -> list[float]:
        self.ran.enqueued += sum(report.jobs for report in sent)
        self.ran.settled += sum(report.settled for report in told)
        return [at - called for report in told for called, at in report.starts]

    def _finish(self, patience: float) -> None:
        deadline = time.time() + patience
        while self.ran.settled < self.ran.enqueued and time.time() < deadline:
            time.sleep(0.05)
            self.ran.last_delays += self._count([], self._crew.tell())


@contextlib.contextmanager
def _stoppable(stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C, SIGTERM or SIGHUP; the next does what it always does.

    An exception would come in the middle of a look, and the look's counts would be lost.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDS)}

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
    """What was added; `None` where that is not known, or the counter was reset."""
    if before is None or after is None or after < before:
        return None
    return after - before


def increases(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> Mapping[str, float] | None:
    """What was added to each; `None` where that is not known."""
    if before is None or after is None:
        return None
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def blocks_per_job(samples: Sequence[Sample]) -> float | None:
    """Blocks that the database touched per settled job."""
    known = [sample.blocks for sample in samples if sample.blocks is not None]
    settled = sum(sample.settled for sample in samples)
    return round(sum(known) / settled, 2) if settled and len(known) == len(samples) else None


def arrivals(ran: Ran) -> Figures:
    """How many jobs came, next to how many should have come, and how many were settled."""
    samples = ran.samples
    end = samples[-1].at if samples else 0.0
    due, sent = sum(sample.due for sample in samples), sum(sample.enqueued for sample in samples)
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
    at = tuple(round(sample.at, 2) for sample in samples)

    def over(unit: str, values: Sequence[float | None]) -> Series:
        return Series(unit, at, tuple(values))

    def megabytes(values: Sequence[int | None]) -> list[float | None]:
        return [None if value is None else round(value / 1e6, 3) for value in values]

    found = {
        "offered": over("jobs/s", [round(sample.due / sample.span, 1) for sample in samples]),
        "enqueued": over("jobs/s", [round(sample.enqueued / sample.span, 1) for sample in samples]),
        "completed": over("jobs/s", [round(sample.settled / sample.span, 1) for sample in samples]),
        "depth": over("jobs", [sample.depth for sample in samples]),
        "latency p50": over("ms", [milliseconds(sample.delays, 0.5) for sample in samples]),
        "latency p95": over("ms", [milliseconds(sample.delays, 0.95) for sample in samples]),
        "claim p50": over("ms", [milliseconds(sample.claims, 0.5) for sample in samples]),
        "claim p95": over("ms", [milliseconds(sample.claims, 0.95) for sample in samples]),
        "workers' memory": over("MB", megabytes([sample.memory for sample in samples])),
        "workers' processor": over(
            "%", [round(100 * sample.cpu / sample.span, 1) for sample in samples]
        ),
        "machine": over("ms", [milliseconds(sample.pieces, 0.5) for sample in samples]),
        "size of all tables": over("MB", megabytes([sample.tables.bytes for sample in samples])),
    }
    if samples and samples[0].tables.dead is not None:
        found |= {
            "blocks per job": over("blocks", [blocks_per_job([sample]) for sample in samples]),
            "size of the job log": over("MB", megabytes([sample.tables.log_bytes for sample in samples])),
            "dead rows in the job log": over("rows", [sample.tables.log_dead for sample in samples]),
            "dead rows in all tables": over("rows", [sample.tables.dead for sample in samples]),
            "oldest transaction": over(
                "s", [None if (age := sample.tables.oldest) is None else round(age, 1)
                      for sample in samples]
            ),
        }  # fmt: skip
    return found
