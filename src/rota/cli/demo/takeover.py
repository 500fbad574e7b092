"""Killing a worker that holds jobs, and watching how the jobs are taken over."""

import time
from dataclasses import dataclass

from rota import Rota
from rota.cli.demo.crew import Crew, Member
from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State

MANY = 100_000
"""More jobs than all workers hold."""

UNDER_WAY = 0.02
"""Seconds until the server has run the last statement of a frozen worker."""


@dataclass
class Takeover:
    """What happened to the jobs of a worker that was killed.

    Attributes:
        worker: The worker's number.
        pid: The worker's process id.
        held: The jobs that the worker held.
        killed_at: When it was killed, by the monotonic clock.
        seconds: Until all jobs were taken back; `None` while some are not.
    """

    worker: int
    pid: int
    held: list[JobId]
    killed_at: float
    seconds: float | None = None


def kill_one(app: Rota, queue: str, crew: Crew) -> Takeover | None:
    """Kill a worker that holds jobs; `None` if none does just now.

    Each is frozen before it is asked for: by the time of an answer, a worker that goes on may have
    settled all its jobs.
    """
    for member in crew.members:
        if member.running and member.freeze():
            time.sleep(UNDER_WAY)
            if _held(app, queue, member.pid):
                return _kill(app, queue, member)
            member.thaw()
    return None


def _kill(app: Rota, queue: str, member: Member) -> Takeover:
    killed_at = time.monotonic()
    member.kill()
    return Takeover(member.number, member.pid, _held(app, queue, member.pid), killed_at)


def watch(app: Rota, queue: str, takeover: Takeover) -> bool:
    """Whether the jobs have been taken back since the last call; notes how long it took."""
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
    """The process id of the job's worker, which is named HOST:PID."""
    return int((job.worker or ":0").rpartition(":")[2])
