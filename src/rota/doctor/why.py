"""Why a job does not run: facts to sentences, with nothing in between.

Each reason is one that by itself keeps the job from running now; the first is the one to look at
first. A job without any is about to run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from rota.doctor.amounts import count, duration
from rota.doctor.work import START
from rota.model.flow import Membership
from rota.model.job import JobId, JobRecord
from rota.model.memory import StepRecord, due
from rota.model.states import State
from rota.store.health import LaneFacts, SessionFacts
from rota.store.serving import alive, serving
from rota.store.standing import MOST, Standing

NOTHING = "Nothing holds it back: a worker is about to take it."
"""What is said of an available job where there is no reason."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job that does not run.

    Attributes:
        standing: Where it stands in its lane; `None` if it is in none: it waits for its time, or
            has just moved on.
        steps: What it remembers, where it sleeps or waits for a signal.
        flow: The flow that it belongs to.
    """

    job: JobRecord
    now: datetime
    paused: bool
    workers: Sequence[SessionFacts]
    lanes: Sequence[LaneFacts]
    standing: Standing | None
    steps: Sequence[StepRecord] = ()
    flow: Membership | None = None


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


def waits(job: JobRecord) -> bool:
    """Whether there is something to explain: a job that neither runs nor has ended."""
    return not job.state.finished and job.state is not State.RUNNING


def reasons(facts: Facts) -> list[Reason]:
    """Why it does not run, the weightiest first."""
    job, standing = facts.job, facts.standing
    found = []
    if facts.paused:
        text = f"The queue {job.queue} is paused."
        found.append(Reason("paused", text, advice=f"rota queues resume {quote(job.queue)}"))
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
    workers = serving(facts.workers, job.queue)
    if not workers:
        living = any(map(alive, facts.workers))
        text = f"No worker serves the queue {job.queue}." if living else "No worker is alive."
        return [Reason("no worker", text, advice=f"{START} --queue {quote(job.queue)}")]
    if standing is not None and not any(worker.id in standing.knowing for worker in workers):
        text = f"No worker of the queue knows the task {job.task}. Was a module not imported, or the task renamed?"
        return [Reason("unknown task", text)]
    return []


def _time(facts: Facts, at: datetime) -> Reason:
    left = (at - facts.now).total_seconds()
    if facts.job.state is State.SCHEDULED and left > 0 and (reason := _held(facts, left)):
        return reason
    what = "for its next attempt" if facts.job.state is State.RETRYABLE else "for its time"
    if left > 0:
        return Reason("time", f"It waits {what}, due in {duration(left)}.")
    return Reason(
        "time",
        f"It waited {what}, which came {duration(-left)} ago; a worker will make it available.",
    )


def _held(facts: Facts, left: float) -> Reason | None:
    """Whether it is scheduled because of what its handler, or its flow, waits for."""
    signals = [step.name for step in facts.steps if step.state == "waiting"]
    sleeps = [step.name for step in facts.steps if step.state == "asleep"]
    for_ever = due(facts.job) is None
    if signals:
        end = "" if for_ever else f", for {duration(left)} at the most"
        return Reason("signal", f"It waits for a signal ({', '.join(signals)}){end}.")
    if sleeps:
        return Reason("sleep", f"It sleeps ({', '.join(sleeps)}), due in {duration(left)}.")
    if for_ever and (flow := facts.flow) is not None:
        text = f"Its node {flow.node} of flow {flow.flow} ({flow.flow_name}) waits for other nodes."
        return Reason("flow", text, advice=f"rota flows show {flow.flow}")
    return None


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
            f"{name} lets {count(limit.rate, 'job')} start within {duration(limit.seconds)}, and that "
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
    verb = "is" if standing.ahead == 1 else "are"
    return Reason(
        "ahead", f"{more.capitalize()}{count(standing.ahead, 'job')}{lane} {verb} ahead of it."
    )
