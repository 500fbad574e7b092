"""A swarm from its begin to its verdict.

Producers and workers go on while the faults of the plan happen; then without faults for a while;
then nothing is enqueued any more, and workers have to come to an end. Last the database is looked
at.
"""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from rota import Rota, StoreError
from tests.fixtures.workers import until
from tests.store.postgres.database import Database
from tests.swarm import judge, ledger, story
from tests.swarm.audit import Audit
from tests.swarm.clock import worn
from tests.swarm.cluster import Cluster, roll_back_prepared
from tests.swarm.crew import Member, watch
from tests.swarm.facts import Facts, gathered, left_over
from tests.swarm.faults import Field, happen
from tests.swarm.plan import Fault
from tests.swarm.release import Release

TIMEOUT = 5.0
"""Seconds of a worker's session."""

RETENTION = 20.0
"""Seconds that completed jobs are kept."""

WORKERS, PRODUCERS = 4, 2

CALM = 4.0
"""Seconds in which work goes on without faults."""

PATIENCE = 60.0
"""Seconds in which a process or a fault comes to its end."""

AGAIN = 6.0
"""Seconds after which a server without a standby gets one."""

TICK = "tests.swarm.tasks.tick"
"""The cron entry that workers have."""

TASKS = (
    "quick", "thread", "process", "together", "flaky", "single", "crowd", "rated", "fair", "subject", "charge",
    "acharge",
)  # fmt: skip
"""All that producers enqueue."""


@dataclass
class Outcome:
    """What came of a swarm.

    Attributes:
        wrong: What the judge complains of.
        jobs: How many were acknowledged.
        runs: How many handlers were called.
        faults: How many there were of each kind.
        missed: How many were not possible when their time came.
    """

    wrong: Sequence[str]
    jobs: int
    runs: int
    faults: Mapping[str, int]
    missed: Counter[str]
    facts: Facts


@dataclass
class Swarm:
    """One swarm.

    Attributes:
        seconds: So long faults happen.
        folder: For the ledger and the logs.
        rate: Jobs a second that are enqueued, if it can be done.
        tasks: What is enqueued.
        long: One of so many jobs with a limit takes long.
        before: The revision that it begins with; that of today comes halfway.
        patience: Seconds in which all jobs must have come to their end, when no more are enqueued.
            Suspects that take ten seconds each run one lot after another, and their workers claim
            nothing meanwhile.
        show: Is told what goes on, and for how many seconds.
    """

    seed: int
    plan: Sequence[Fault]
    seconds: float
    folder: Path
    rate: float = 250.0
    tasks: Sequence[str] = TASKS
    long: int = 31
    patience: float = 240.0
    before: str | None = None
    show: Callable[[str, float], None] = lambda _, __: None
    _wrong: list[str] = field(default_factory=list)
    _missed: Counter[str] = field(default_factory=Counter)

    def run(self) -> Outcome:
        """All of it."""
        for name in ("ledger", "logs"):
            (self.folder / name).mkdir(parents=True)
        with ExitStack() as stack:
            clock = stack.enter_context(worn())
            book = ledger.Ledger(self.folder / "ledger", "faults")
            release = Release(self.before, self.folder / "before") if self.before else None
            migrate = release.migrate if release else _migrate
            cluster = stack.enter_context(closing(Cluster(book, migrate)))
            code = release.environment if release else {}
            workers = [self._member("worker", n, cluster, book, code) for n in range(WORKERS)]
            producers = [self._member("producer", n, cluster, book, code) for n in range(PRODUCERS)]
            over = threading.Event()
            watching = watch([*workers, *producers], over)
            stack.callback(self._let_go, [*workers, *producers], over, watching)
            self._course(Field(cluster, workers, producers, book, clock, threading.Event()))
            over.set()
            watching.join()
            _end(workers)
            facts = gathered(cluster.url)
        return self._judged(facts, [*workers, *producers])

    def _member(
        self, kind: str, number: int, cluster: Cluster, book: ledger.Ledger, code: Mapping[str, str]
    ) -> Member:
        said = {
            "SWARM_SEED": str(self.seed),
            "SWARM_RATE": str(self.rate / PRODUCERS),
            "SWARM_TIMEOUT": str(TIMEOUT),
            "SWARM_RETENTION": str(RETENTION),
            "SWARM_TASKS": ",".join(self.tasks),
            "SWARM_LONG": str(self.long),
        }
        return Member(
            f"tests.swarm.{kind}", f"{kind}-{number}",
            proxy=cluster.proxy(), folder=self.folder, ledger=book, environment={**said, **code},
        )  # fmt: skip

    @staticmethod
    def _let_go(
        members: Sequence[Member], over: threading.Event, watching: threading.Thread
    ) -> None:
        over.set()
        watching.join()
        for member in members:
            member.let_go()

    # The course ------------------------------------------------------------------------------

    def _course(self, field: Field) -> None:
        until(lambda: any((self.folder / "ledger").glob("worker-*")), "the first job", PATIENCE)
        begin = time.monotonic()
        audit = Audit(field.cluster)
        threads = [
            threading.Thread(target=self._standbys, args=(field,), daemon=True),
            threading.Thread(target=audit.run, args=(field.stop,), daemon=True),
            threading.Thread(target=self._deploy, args=(field,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        for fault in self.plan:
            self._wait(begin + fault.at, str(fault))
            threads.append(threading.Thread(target=self._happen, args=(field, fault), daemon=True))
            threads[-1].start()
        self._wait(begin + self.seconds, "the last faults")
        field.stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                self._wrong.append("a fault does not end")
        self._wrong += audit.wrong
        self._wait(time.monotonic() + CALM, "calm")
        _end(field.producers)
        self._prepared(field)
        self._drained(field)

    def _wait(self, moment: float, what: str) -> None:
        while (left := moment - time.monotonic()) > 0:
            self.show(what, left)
            time.sleep(min(left, 0.25))

    def _happen(self, field: Field, fault: Fault) -> None:
        try:
            if not happen(field, fault):
                self._missed[fault.kind] += 1
        except Exception as error:  # noqa: BLE001 - what is wrong with a fault is told at the end
            self._wrong.append(f"the fault {fault.kind} failed: {error!r}")

    def _standbys(self, field: Field) -> None:
        """Let the server have a standby, some seconds after it has lost the last one."""
        wanted = any(
            fault.kind in {"fail-over", "fail-over-behind", "move-to-clone"} for fault in self.plan
        )
        while wanted and not field.stop.is_set():
            # PostgreSQL may lack pg_basebackup here: then what needs a standby is not possible.
            with suppress(psycopg.Error, subprocess.CalledProcessError, FileNotFoundError):
                field.cluster.attach()
            field.stop.wait(AGAIN)

    def _deploy(self, field: Field) -> None:
        """Halfway: first the tables of today, then the code, one process after another."""
        field.stop.wait(self.seconds / 2)
        while self.before is not None and not field.stop.is_set():
            with suppress(StoreError, psycopg.Error):
                _migrate(field.cluster.url)
                break
            field.stop.wait(1.0)
        for member in [*field.workers, *field.producers] if self.before is not None else []:
            member.environment = {
                key: value for key, value in member.environment.items() if key != "PYTHONPATH"
            }
            field.stop.wait(2.0)
            member.stop()

    @staticmethod
    def _prepared(field: Field) -> None:
        """Roll back what was prepared and left, as whoever looks after a database does."""
        with field.cluster.admin() as admin:
            roll_back_prepared(admin)

    def _drained(self, field: Field) -> None:
        """Wait until there is nothing left to do."""
        deadline = time.monotonic() + self.patience
        with Rota(field.cluster.url) as app:
            # The entry is due every two seconds, also while the last worker stops.
            app.cron.pause(TICK)
            while (left := left_over(app)) and time.monotonic() < deadline:
                self.show(f"{sum(left.values())} jobs are left", deadline - time.monotonic())
                time.sleep(0.25)

    # The verdict -----------------------------------------------------------------------------

    def _judged(self, facts: Facts, members: Sequence[Member]) -> Outcome:
        told = story.told(ledger.read(self.folder / "ledger"))
        logs = sorted((self.folder / "logs").iterdir())
        traced = [log.name for log in logs if "Traceback" in log.read_text(errors="replace")]
        wrong = [
            *self._wrong,
            *(odd for member in members for odd in member.odd),
            *(f"there is a traceback in {name}" for name in traced[: judge.SHOWN]),
            *judge.complaints(told, facts),
        ]
        sure = sum(job.fate is story.Fate.SURE for job in told.jobs.values())
        if not sure:
            wrong.append("nothing was enqueued")
        runs = sum(len(job.runs) for job in told.jobs.values())
        return Outcome(wrong, sure, runs, told.faults, self._missed, facts)


def _end(members: Sequence[Member]) -> None:
    for member in members:
        member.end()
    for member in members:
        member.ended(PATIENCE)


def _migrate(url: str) -> None:
    with Database(url):
        pass
