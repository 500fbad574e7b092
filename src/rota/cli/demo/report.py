"""The result of a demo, in numbers, in words and as JSON."""

from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Any

from rota.cli.demo.takeover import Takeover
from rota.terminal.output import harmless

NAMED = 5
"""How many files are named."""


@dataclass
class Report:
    """One demo.

    Attributes:
        folder: The folder of the files.
        database: Its URL without the password, or where it is.
        queue: The queue of the jobs.
        workers: How many workers were started.
        session_timeout: Seconds until a silent worker counts as dead.
        jobs: How many jobs.
        size: Bytes of all files.
        skipped: Files that could not be read.
        enqueue_seconds: Until all jobs were stored.
        seconds: From the first enqueue until the last job had finished.
        states: How many jobs ended in which state.
        attempts: How many jobs needed how many attempts.
        wrong: Files with a stored checksum that differs from the checksum computed directly.
        kill: Whether a worker was to be killed.
        takeover: What happened then, if a worker was caught with jobs.
    """

    folder: str
    database: str
    queue: str
    workers: int
    session_timeout: float
    kill: bool
    jobs: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)
    enqueue_seconds: float = 0.0
    seconds: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    takeover: Takeover | None = None

    @property
    def completed(self) -> int:
        """How many jobs completed."""
        return self.states.get("completed", 0)

    @property
    def good(self) -> bool:
        """Whether every job completed and every checksum is right."""
        return self.jobs > 0 and self.completed == self.jobs and not self.wrong

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds if self.seconds else 0.0

    @property
    def again(self) -> int:
        """How many jobs needed more than one attempt."""
        return sum(jobs for attempts, jobs in self.attempts.items() if attempts > 1)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        takeover = self.takeover
        return {
            "ok": self.good,
            "folder": harmless(self.folder),
            "database": self.database,
            "queue": self.queue,
            "workers": self.workers,
            "session_timeout": self.session_timeout,
            "jobs": self.jobs,
            "bytes": self.size,
            "enqueue_seconds": round(self.enqueue_seconds, 4),
            "seconds": round(self.seconds, 4),
            "rate": round(self.rate, 1),
            "states": self.states,
            "attempts": {str(count): jobs for count, jobs in sorted(self.attempts.items())},
            "killed": None
            if takeover is None
            else {
                "worker": takeover.worker,
                "pid": takeover.pid,
                "rescued": len(takeover.held),
                "seconds": takeover.seconds and round(takeover.seconds, 3),
            },
            "checked": self.jobs,
            "wrong": [harmless(path) for path in self.wrong],
            "skipped": [harmless(path) for path in self.skipped],
        }

    def words(self) -> Iterator[tuple[str, str, bool]]:
        """Subject, text, and whether it is good."""
        size = f"{self.size / 1e6:.1f} MB" if self.size >= 1e5 else f"{self.size} bytes"  # noqa: PLR2004
        yield "jobs", f"{self.jobs:,}, one for each file ({size})", True
        speed = f"{self.rate:,.0f} jobs/s with {self.workers} workers"
        included = ", the takeover included" if self.takeover else ""
        yield "time", f"{self.seconds:.2f} s, {speed}{included}", True
        yield "enqueue", f"{self.enqueue_seconds * 1000:,.0f} ms for all jobs", True
        ended = ", ".join(f"{jobs:,} {state}" for state, jobs in self.states.items())
        all_well = self.completed == self.jobs
        yield "ends", "every job completed" if all_well else ended, all_well
        more = f"; {self.again:,} needed more" if self.again else ""
        yield "attempts", f"{self.attempts.get(1, 0):,} jobs needed one attempt{more}", True
        if self.takeover is not None:
            yield "takeover", self._takeover(self.takeover), True
        elif self.kill:
            text = "none: no worker was caught with a job; try a larger folder"
            yield "takeover", text, False
        if not self.wrong:
            yield "check", f"all {self.jobs:,} checksums are right", True
            return
        named = ", ".join(harmless(path) for path in self.wrong[:NAMED])
        rest = f", and {len(self.wrong) - NAMED} more" if len(self.wrong) > NAMED else ""
        yield (
            "check",
            f"{len(self.wrong):,} of {self.jobs:,} checksums are wrong: {named}{rest}",
            False,
        )

    def _takeover(self, takeover: Takeover) -> str:
        after = "never" if takeover.seconds is None else f"{takeover.seconds:.1f} s later"
        return (
            f"worker {takeover.worker} was killed while it held {counted(takeover.held)}, "
            f"rescued {after}"
        )


def counted(jobs: Sized) -> str:
    """How many jobs these are, in words."""
    return "1 job" if len(jobs) == 1 else f"{len(jobs):,} jobs"
