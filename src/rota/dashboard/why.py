"""Why a job does not run: facts to sentences, with nothing in between.

Each reason is one that by itself keeps the job from running now; the first is the one to look at first. A job
without any is about to run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rota.doctor.amounts import count, duration
from rota.doctor.work import START, alive
from rota.model.job import JobId, JobRecord
from rota.model.patterns import meaning
from rota.model.states import State
from rota.store.health import LaneFacts, SessionFacts
from rota.store.standing import MOST, Standing


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job that does not run.

    Attributes:
        standing: Where it stands in its lane; `None` if it is in none: it waits for its time, or has just moved on.
    """

    job: JobRecord
    now: datetime
    paused: bool
    workers: Sequence[SessionFacts]
    lanes: Sequence[LaneFacts]
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Attributes:
        subject: In a word that never changes, for programs.
        jobs: The jobs that it is about, such as those that have a limit's places.
        advice: The next step, if there is any: a command to copy.
    """

    subject: str
    text: str
    jobs: tuple[JobId, ...] = field(default=())
    advice: str = ""


def reasons(facts: Facts) -> list[Reason]:
    """Why it does not run, the weightiest first."""
    job, standing = facts.job, facts.standing
    found = []
    if facts.paused:
        text = f"The queue {job.queue} is paused."
        found.append(Reason("paused", text, advice=f"rota queues resume {job.queue}"))
    found += _workers(facts)
    if job.state is not State.AVAILABLE and job.scheduled_at is not None:
        found.append(_time(facts, job.scheduled_at))
    if standing is not None and job.state is State.AVAILABLE:
        found += _limit(standing)
        found += _priority(facts)
        if standing.ahead:
            found.append(_ahead(standing))
    return found


def _workers(facts: Facts) -> list[Reason]:
    """Whether there is a worker for it."""
    job, standing = facts.job, facts.standing
    living = [worker for worker in facts.workers if alive(worker)]
    serving = [worker for worker in living if meaning(worker.queues, job.queue) is not None]
    if not serving:
        text = "No worker is alive." if not living else f"No worker serves the queue {job.queue}."
        return [Reason("no worker", text, advice=f"{START} --queue {job.queue}")]
    if standing is not None and not any(worker.id in standing.knowing for worker in serving):
        text = f"No worker of the queue knows the task {job.task}. Is a module not imported, or was the task renamed?"
        return [Reason("unknown task", text)]
    return []


def _time(facts: Facts, at: datetime) -> Reason:
    left = (at - facts.now).total_seconds()
    what = "for its next attempt" if facts.job.state is State.RETRYABLE else "for its time"
    if left > 0:
        return Reason("time", f"It waits {what}, in {duration(left)}.")
    return Reason(
        "time", f"It waited {what}, which came {duration(-left)} ago; a worker stages it."
    )


def _limit(standing: Standing) -> list[Reason]:
    """What its limit says."""
    limit = standing.limit
    if limit is None:
        return []
    name = f"Its limit {limit.key}".rstrip()
    found = []
    if limit.running is not None and limit.held >= limit.running:
        text = f"{name} is full: {limit.held} of {limit.running} running."
        found.append(Reason("limit", text, standing.holders))
    if limit.rate is not None and limit.started >= limit.rate:
        text = (
            f"{name} lets {count(limit.rate, 'job')} start within {duration(limit.seconds)}, and so "
            f"many have started."
        )
        found.append(Reason("rate", text))
    return found


def _priority(facts: Facts) -> list[Reason]:
    """Whether jobs with another priority start before it."""
    job = facts.job
    before = [
        lane.priority
        for lane in facts.lanes
        if lane.queue == job.queue and lane.priority < job.priority and lane.oldest is not None
    ]
    if not before:
        return []
    return [
        Reason(
            "priority",
            f"Jobs with priority {min(before)} start before it; its own is {job.priority}.",
        )
    ]


def _ahead(standing: Standing) -> Reason:
    more = "at least " if standing.ahead >= MOST else ""
    lane = " with the same key" if standing.of_key else ""
    stand = "stands" if standing.ahead == 1 else "stand"
    return Reason(
        "ahead", f"{more.capitalize()}{count(standing.ahead, 'job')}{lane} {stand} before it."
    )
