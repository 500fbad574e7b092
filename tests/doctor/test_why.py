"""Why a job does not run: facts to reasons, without a database."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota import JobRecord, State
from rota.doctor.why import Facts, reasons, waits
from rota.model.flow import WAITING, FlowId, Membership
from rota.model.job import JobId
from rota.model.limit_record import LimitRecord
from rota.model.memory import StepRecord
from rota.store.health import LaneFacts, SessionFacts
from rota.store.standing import MOST, Standing

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)

JOB = JobRecord(
    id=JobId(7), task="send", args="{}", queue="mail", priority=0, state=State.AVAILABLE, attempt=0,
    max_attempts=5, timeout=None, enqueued_at=NOW,
)  # fmt: skip

WORKER = SessionFacts(
    id=1, worker="host:1", queues=("mail",), timeout=30.0, silent=1.0, leased=0, oldest_lease=None
)

FREE = Standing(ahead=0, of_key=False, knowing=(1,))

FACTS = Facts(job=JOB, now=NOW, paused=False, workers=(WORKER,), lanes=(), standing=FREE)


def limited(limit: LimitRecord) -> Facts:
    """A job whose limit is this one."""
    return replace(FACTS, standing=replace(FREE, of_key=True, limit=limit, holders=(JobId(3),)))


def subjects(facts: Facts) -> Sequence[str]:
    """The subjects of the reasons."""
    return [reason.subject for reason in reasons(facts)]


def test_nothing_keeps_it() -> None:
    """A job that is about to run has no reason."""
    assert reasons(FACTS) == []


def test_paused() -> None:
    """With the command that lets the queue go on."""
    [reason] = reasons(replace(FACTS, paused=True))
    assert reason.subject == "paused"
    assert reason.advice == "rota queues resume mail"


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        (replace(WORKER, silent=31.0), "No worker is alive."),
        (replace(WORKER, queues=("other",)), "No worker serves the queue mail."),
    ],
)
def test_no_worker(worker: SessionFacts, text: str) -> None:
    """A silent worker, and one of another queue, are none."""
    [reason] = reasons(replace(FACTS, workers=(worker,)))
    assert (reason.subject, reason.text) == ("no worker", text)


def test_a_pattern_serves_the_queue() -> None:
    """A worker of `m*` takes jobs of mail."""
    assert reasons(replace(FACTS, workers=(replace(WORKER, queues=("m*",)),))) == []


def test_unknown_task() -> None:
    """Workers of other queues may know the task; that does not help."""
    other = replace(WORKER, id=2, queues=("other",))
    facts = replace(FACTS, workers=(WORKER, other), standing=replace(FREE, knowing=(2,)))
    assert subjects(facts) == ["unknown task"]


def test_time() -> None:
    """How long it waits; that a worker has yet to stage it, where its time has come."""
    later = replace(JOB, state=State.RETRYABLE, scheduled_at=NOW + timedelta(minutes=3))
    [reason] = reasons(replace(FACTS, job=later))
    assert reason.text == "It waits for its next attempt, due in 3 min."
    due = replace(JOB, state=State.SCHEDULED, scheduled_at=NOW - timedelta(seconds=2))
    [reason] = reasons(replace(FACTS, job=due))
    assert (
        reason.text
        == "It waited for its time, which came 2 s ago; a worker will make it available."
    )


def test_what_a_handler_waits_for() -> None:
    """A signal, with its name and for how long at the most; the end of a sleep."""
    job = replace(JOB, state=State.SCHEDULED, scheduled_at=NOW + timedelta(minutes=3))
    done = StepRecord("step", "draw", "done", NOW)
    signal, sleep = (
        StepRecord("wait", "approved", "waiting", NOW),
        StepRecord("sleep", "a while", "asleep", NOW),
    )
    [reason] = reasons(replace(FACTS, job=job, steps=[done, signal]))
    assert (reason.subject, reason.text) == (
        "signal",
        "It waits for a signal (approved), for 3 min at the most.",
    )
    for_ever = replace(job, scheduled_at=NOW + timedelta(seconds=WAITING))
    [reason] = reasons(replace(FACTS, job=for_ever, steps=[signal]))
    assert reason.text == "It waits for a signal (approved)."
    [reason] = reasons(replace(FACTS, job=job, steps=[done, sleep]))
    assert (reason.subject, reason.text) == ("sleep", "It sleeps (a while), due in 3 min.")
    [reason] = reasons(replace(FACTS, job=replace(job, state=State.RETRYABLE), steps=[signal]))
    assert reason.text == "It waits for its next attempt, due in 3 min."


def test_a_flow_holds_it() -> None:
    """A job whose node waits for others has no time of its own; one whose node has begun has."""
    flow = Membership(FlowId(12), "order", "ship")
    job = replace(JOB, state=State.SCHEDULED, scheduled_at=NOW + timedelta(seconds=WAITING))
    [reason] = reasons(replace(FACTS, job=job, flow=flow))
    assert reason.text == "Its node ship of flow 12 (order) waits for other nodes."
    assert (reason.subject, reason.advice) == ("flow", "rota flows show 12")
    delayed = replace(job, scheduled_at=NOW + timedelta(minutes=3))
    assert subjects(replace(FACTS, job=delayed, flow=flow)) == ["time"]


def test_which_jobs_wait() -> None:
    """Of a job that runs, or has ended, nobody asks why it does not run."""
    assert {state for state in State if waits(replace(JOB, state=state))} == {
        State.AVAILABLE,
        State.SCHEDULED,
        State.RETRYABLE,
    }


def test_limit() -> None:
    """A limit that is full, with the jobs that have its places."""
    limit = LimitRecord(
        "tenant:7", running=1, held=1, rate=None, seconds=None, started=0, waiting=True
    )
    [reason] = reasons(limited(limit))
    assert reason.subject == "limit"
    assert reason.text == "Its limit tenant:7 is full: 1 of 1 running."
    assert reason.jobs == (3,)
    assert reasons(limited(replace(limit, running=2))) == []


def test_rate() -> None:
    """A rate that is used up."""
    limit = LimitRecord(
        "smtp", running=None, held=9, rate=10, seconds=60.0, started=10, waiting=True
    )
    [reason] = reasons(limited(limit))
    assert reason.subject == "rate"
    assert reason.text == (
        "Its limit smtp lets 10 jobs start within 1 min, and that many have started."
    )
    assert reasons(limited(replace(limit, started=9))) == []


def test_a_limit_means_nothing_before_the_time() -> None:
    """A job that waits for its time stands nowhere yet."""
    limit = LimitRecord("smtp", running=1, held=1, rate=None, seconds=None, started=0, waiting=True)
    later = replace(JOB, state=State.SCHEDULED, scheduled_at=NOW + timedelta(minutes=3))
    assert subjects(replace(limited(limit), job=later)) == ["time"]


def test_priority() -> None:
    """Jobs of smaller priority in the same queue, and of no other."""
    lanes = [
        LaneFacts("mail", -5, paused=False, oldest=1.0),
        LaneFacts("mail", -9, paused=False, oldest=None),
        LaneFacts("other", -10, paused=False, oldest=1.0),
        LaneFacts("mail", 5, paused=False, oldest=1.0),
    ]
    [reason] = reasons(replace(FACTS, lanes=lanes))
    assert reason.text == "Jobs with priority -5 start before it; its own is 0."


@pytest.mark.parametrize(
    ("ahead", "of_key", "text"),
    [
        (1, False, "1 job is ahead of it."),
        (20, True, "20 jobs with the same key are ahead of it."),
        (MOST, False, "At least 1,000 jobs are ahead of it."),
    ],
)
def test_ahead(ahead: int, of_key: bool, text: str) -> None:  # noqa: FBT001
    """How many jobs start before it."""
    facts = replace(FACTS, standing=replace(FREE, ahead=ahead, of_key=of_key))
    [reason] = reasons(facts)
    assert (reason.subject, reason.text) == ("ahead", text)
