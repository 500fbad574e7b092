"""Killing a worker that has jobs in its hands, and watching what becomes of them."""

import time
from dataclasses import dataclass

from rota import Rota
from rota.cli.demo.crew import Crew, Member
from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State

MANY = 100_000
"""More jobs than workers hold."""

UNDER_WAY = 0.02
"""Seconds until a server has done what a worker had sent when it was frozen."""


@dataclass
class Takeover:
    """What happened to the jobs of a worker that was killed.

    Attributes:
        worker: Its number.
        pid: Of its process.
        held: The jobs it had.
        killed_at: By the monotonic clock.
        seconds: Until all of them were taken back; `None` while some are not.
    """

    worker: int
    pid: int
    held: list[JobId]
    killed_at: float
    seconds: float | None = None


def kill_one(app: Rota, queue: str, crew: Crew) -> Takeover | None:
    """Kill a worker that holds jobs; `None` if none does just now.

    A worker may settle all it has while one makes up one's mind. So it is frozen first, and only
    killed if it still holds something then.
    """
    for pid in sorted({_pid(job) for job in _running(app, queue)}):
        member = crew.find(pid)
        if member is not None and member.freeze():
            time.sleep(UNDER_WAY)
            if _held(app, queue, pid):
                return _kill(app, queue, member)
            member.thaw()
    return None


def _kill(app: Rota, queue: str, member: Member) -> Takeover:
    killed_at = time.monotonic()
    member.kill()
    return Takeover(member.number, member.pid, _held(app, queue, member.pid), killed_at)


def watch(app: Rota, queue: str, takeover: Takeover) -> bool:
    """Whether the jobs have been taken back just now; notes how long it took."""
    if takeover.seconds is not None or _held(app, queue, takeover.pid):
        return False
    takeover.seconds = time.monotonic() - takeover.killed_at
    return True


def _running(app: Rota, queue: str) -> list[JobRecord]:
    wanted = JobFilter(state=State.RUNNING, queue=queue, limit=MANY)
    return app.database.run(app.database.store.list_jobs(wanted))


def _held(app: Rota, queue: str, pid: int) -> list[JobId]:
    return sorted(job.id for job in _running(app, queue) if _pid(job) == pid)


def _pid(job: JobRecord) -> int:
    """Of the worker, which is named HOST:PID."""
    return int((job.worker or ":0").rpartition(":")[2])
