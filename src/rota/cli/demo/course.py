"""The steps of a demo: enqueue, watch, kill, check, clean up."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from rota import Rota
from rota.cli.demo import takeover, tasks
from rota.cli.demo.crew import Crew
from rota.cli.demo.files import Found
from rota.cli.demo.report import Report, counted
from rota.cli.demo.telling import Step, Teller
from rota.errors import StoreError
from rota.model.job import JobFilter, JobId
from rota.model.states import FINISHED, State
from rota.store import migrate
from rota.terminal.output import harmless

LOOK = 0.05
"""Seconds between two looks at the counts."""

PORTIONS = 4
"""Portions of the second half, until a worker is caught with jobs: those of a small folder are
done before the demo can look."""

BATCH = 1000
"""Jobs in one lookup or deletion."""

TIDY_PATIENCE = 5.0
"""Seconds that cleaning up may take beyond the session timeout."""


@contextmanager
def temporary_database(url: str | None) -> Iterator[tuple[str, Path]]:
    """The URL, else that of a temporary file; and a folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rota-demo-"))
    try:
        yield url or f"sqlite:///{folder}/rota.db", folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepare(app: Rota, url: str) -> None:
    """Let the app use a database, and bring its tables up to date."""
    app.use(url)
    with closing(app.database.store.connect()) as connection:
        migrate.migrate(app.database.store, connection)


class Course:
    """One demo, on a database that is ready."""

    def __init__(self, app: Rota, found: Found, report: Report, teller: Teller) -> None:
        self._app = app
        self._found = found
        self._report = report
        self._teller = teller
        self._crew: Crew | None = None
        self._ids = list[JobId]()

    def run(self, url: str, folder: Path) -> None:
        """Run the demo and fill the report."""
        report = self._report
        with Crew(url, report.queue, report.workers, report.session_timeout, folder) as crew:
            self._crew = crew
            crew.wait_ready()
            started = time.monotonic()
            with self._teller.step("jobs completed", len(self._found.paths)) as step:
                if report.kill:
                    self._enqueue(self._found.paths[: len(self._found.paths) // 2])
                    self._watch(step, started)
                    self._interrupt()
                self._enqueue(self._found.paths[len(self._ids) :])
                self._watch(step, started)
                report.seconds = time.monotonic() - started
        self._check()

    # Work ------------------------------------------------------------------------------------

    def _enqueue(self, paths: list[str]) -> None:
        began = time.monotonic()
        task = tasks.checksum.using(queue=self._report.queue)
        self._ids += task.enqueue_many((path,) for path in paths)
        self._report.enqueue_seconds += time.monotonic() - began

    def _watch(self, step: Step, started: float) -> None:
        """Look on until all enqueued jobs have finished."""
        assert self._crew is not None  # noqa: S101 - set by run
        while True:
            running = self._crew.running
            self._look_for_takeover()
            counts = self._counts()
            finished = _finished(counts)
            rate = finished / (time.monotonic() - started)
            workers = f"{running} worker{'s' if running != 1 else ''} running"
            step.reached(counts.get(State.COMPLETED, 0), f"{rate:,.0f} jobs/s, {workers}")
            if finished >= len(self._ids):
                return
            time.sleep(LOOK)

    def _counts(self) -> dict[State, int]:
        queues = self._app.database.run(self._app.database.store.queues())
        return next(
            (dict(record.counts) for record in queues if record.name == self._report.queue), {}
        )

    # Takeover --------------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """Go on enqueueing, until a worker is killed with jobs in its hands."""
        rest = self._found.paths[len(self._ids) :]
        size = max(1, len(rest) // PORTIONS)
        for first in range(0, len(rest), size):
            self._enqueue(rest[first : first + size])
            if self._kill_one():
                return

    def _kill_one(self) -> bool:
        assert self._crew is not None  # noqa: S101 - set by run
        report = self._report
        while _finished(self._counts()) < len(self._ids):
            report.takeover = takeover.kill_one(self._app, report.queue, self._crew)
            if report.takeover is not None:
                took = report.takeover
                self._teller.note(
                    f"Killed worker {took.worker} (kill -9) with {counted(took.held)} in its "
                    f"hands. Its session ends after {report.session_timeout:g} s of silence; then "
                    "others take over.",
                    style="yellow",
                )
                return True
        return False

    def _look_for_takeover(self) -> None:
        report = self._report
        took = report.takeover
        if took is not None and takeover.watch(self._app, report.queue, took):
            self._teller.note(
                f"Rescued: {counted(took.held)} back in the queue after {took.seconds:.1f} s.",
                style="green",
            )

    # Afterwards ------------------------------------------------------------------------------

    def _check(self) -> None:
        """Compare the stored checksums with checksums computed here, one file after the other."""
        report = self._report
        states: Counter[str] = Counter()
        attempts: Counter[int] = Counter()
        with self._teller.step("checksums compared", len(self._ids)) as step:
            for first in range(0, len(self._ids), BATCH):
                ids = self._ids[first : first + BATCH]
                records = {
                    job.id: job for job in self._app.database.run(self._app.database.store.get(ids))
                }
                for number, job in enumerate(ids, first):
                    record = records.get(job)
                    states[record.state.value if record else "lost"] += 1
                    attempts[record.attempt if record else 0] += 1
                    path = self._found.paths[number]
                    if record is None or record.result != f'"{direct_checksum(path)}"':
                        report.wrong.append(path)
                step.reached(first + len(ids))
        report.states, report.attempts = dict(states), dict(attempts)

    def clean_up(self) -> None:
        """Delete the demo's jobs; a dead worker's jobs once its session is over."""
        # An interrupted call may have stored jobs whose ids are not known here.
        store, database = self._app.database.store, self._app.database
        wanted = JobFilter(queue=self._report.queue, limit=BATCH)
        deadline = time.monotonic() + self._report.session_timeout + TIDY_PATIENCE
        while time.monotonic() < deadline:
            deleted: list[JobId] = []
            with suppress(StoreError):
                left = [job.id for job in database.run(store.list_jobs(wanted))]
                if not left:
                    return
                deleted = database.run(store.delete(left))
                database.run(store.rescue())
            if not deleted:
                time.sleep(LOOK)
        self._teller.note(f"Jobs of queue {self._report.queue} could not be deleted")


def _finished(counts: Mapping[State, int]) -> int:
    """How many jobs are in a final state."""
    return sum(counts.get(state, 0) for state in FINISHED)


def direct_checksum(path: str) -> str:
    """The right checksum, or why the file cannot be read."""
    try:
        return tasks.checksum(path)
    except OSError as error:
        return harmless(str(error))
