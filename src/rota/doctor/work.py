"""Queues, workers and timers: what both backends have."""

from collections.abc import Collection, Container, Sequence
from shlex import quote

from rota.doctor import flows
from rota.doctor.amounts import count, duration
from rota.doctor.finding import Finding, Severity, few
from rota.model.patterns import meaning
from rota.store.health import (
    MOST_JOBS,
    LaneFacts,
    RescueFacts,
    SessionFacts,
    TransferFacts,
    WorkFacts,
)
from rota.store.serving import alive, serving

RESCUE_PATIENCE = 15.0
"""Seconds beyond its timeout after which a silent worker's jobs should have been taken over."""

LONG_LEASE = 3600.0
"""Seconds for which a worker may hold a job without being named; the job may just be long."""

UNATTENDED, UNATTENDED_LONG = 30.0, 600.0
"""Seconds a job may wait in a queue without a worker, which is noted at once: warning, critical."""

BEHIND = 300.0
"""Seconds a job may wait in a queue with a worker."""

PAUSED_LONG = 3600.0
"""Seconds a job may wait in a paused queue before that looks forgotten."""

OVERDUE, OVERDUE_LONG = 10.0, 300.0
"""Seconds by which a waiting job may be late: warning, critical."""

LEFT = 60.0
"""Seconds after which a transfer looks forgotten: a mover needs a moment for each."""

MANY_RESCUED = 5
"""Jobs of one task that lost their worker within an hour; so many are no accident."""

MANY_KEYS = 10_000
"""Keys of limits and fair shares in use in one queue; so many are a burden."""

SHOWN = 4
"""How many findings of one kind are shown."""

START = "rota worker MODULE:APP"


def judge(work: WorkFacts, unseen: Collection[str] = ()) -> list[Finding]:
    """Everything about jobs and workers, but for parts that could not be seen."""
    living = [session for session in work.sessions if alive(session)]
    dead = [session for session in work.sessions if not alive(session)]
    served = {queue for session in living for queue in session.queues}
    attended = {
        lane.queue
        for lane in work.lanes
        if "sessions" in unseen or meaning(served, lane.queue) is not None
    }
    findings = []
    if "sessions" not in unseen:
        findings += _workers(work, living)
        findings += few([_dead(session, living) for session in dead], SHOWN, "silent workers")
        long = [_long(session) for session in living if (session.oldest_lease or 0) >= LONG_LEASE]
        findings += few(long, SHOWN, "workers with long-running jobs")
    unknown = _unknown(work, living) if "sessions" not in unseen else {}
    findings += few([*unknown.values()], SHOWN, "tasks that no worker knows")
    findings += few(
        [_rescued(rescued) for rescued in work.rescued], SHOWN, "tasks whose workers died"
    )
    if "queues" not in unseen:
        lanes = [lane for lane in work.lanes if (lane.queue, lane.task) not in unknown]
        findings += _queues(lanes, attended)
    many = [_many_keys(queue, keys) for queue, keys in work.keys if keys >= MANY_KEYS]
    findings += few(many, SHOWN, "queues with many keys")
    if work.transfers is not None:
        findings += _transfers(work.transfers)
    if "timers" not in unseen:
        findings.append(_timers(work.overdue, living))
    if not {"flows", "sessions", "queues"} & set(unseen):
        findings += flows.judge(work, living)
    return findings


def _workers(work: WorkFacts, living: list[SessionFacts]) -> list[Finding]:
    if living:
        held = sum(session.leased for session in living)
        title = f"{count(len(living), 'worker')} alive, with {count(held, 'job')}"
        return [Finding(Severity.OK, "workers", title)]
    waiting = work.overdue is not None or any(
        lane.oldest is not None and not lane.paused for lane in work.lanes
    )
    return [
        Finding(
            Severity.WARNING if waiting else Severity.NOTE,
            "workers",
            "No worker is alive",
            "Jobs stay where they are; nothing is lost.",
            START,
        )
    ]


def _dead(session: SessionFacts, living: list[SessionFacts]) -> Finding:
    title = f"Worker {session.worker} has been silent for {duration(session.silent)}"
    if not session.leased:
        return Finding(
            Severity.NOTE,
            "sessions",
            title,
            f"session {session.id} holds no jobs; the next worker removes it",
        )
    overdue = session.silent - session.timeout
    jobs = count(session.leased, "job")
    # A worker that has just started has not had the time yet.
    others = max((worker.open for worker in living), default=None)
    if others is not None and min(overdue, others) <= RESCUE_PATIENCE:
        detail = f"session {session.id}; other workers take over its {jobs} within seconds"
        return Finding(Severity.NOTE, "sessions", title, detail)
    detail = f"session {session.id}; it had {duration(session.timeout)} for a sign of life. "
    if others is None:
        step = START
        detail += "There is no other worker to take over its jobs."
    else:
        step = f"{START} -v"
        detail += (
            "Other workers are alive but do not take over its jobs. Has a transaction locked "
            "their leases, such as a prepared one (see horizon)? Otherwise start a worker with "
            "upkeep, and read its log."
        )
    return Finding(
        Severity.CRITICAL if overdue > RESCUE_PATIENCE else Severity.NOTE,
        "sessions",
        f"{title} and still holds {jobs}",
        detail,
        step,
    )


def _long(session: SessionFacts) -> Finding:
    return Finding(
        Severity.NOTE,
        "sessions",
        f"Worker {session.worker} has held a job for {duration(session.oldest_lease)}",
        f"session {session.id} is alive; the job is long, or its handler is stuck",
        "rota jobs list --state running",
    )


def _rescued(rescued: RescueFacts) -> Finding:
    their, kills = (
        ("its", "does it use up memory and kill its worker?")
        if rescued.jobs == 1
        else ("their", "do they use up memory and kill their workers?")
    )
    return Finding(
        Severity.WARNING if rescued.jobs >= MANY_RESCUED else Severity.NOTE,
        "rescued",
        f"{count(rescued.jobs, 'job')} of {rescued.task} lost {their} worker within the last hour",
        f"the last {duration(rescued.last)} ago, with no other job on the worker; {kills} "
        "(seen among the newest jobs)",
        f"rota jobs show {rescued.job}"
        if rescued.jobs == 1
        else f"rota jobs list --task {quote(rescued.task)}",
    )


def _unknown(work: WorkFacts, living: list[SessionFacts]) -> dict[tuple[str, str | None], Finding]:
    """The tasks that no living worker of their queue knows, by queue and task; none where none lives."""
    found: dict[tuple[str, str | None], Finding] = {}
    for facts in work.passed_on if living else ():
        if any(session.id in facts.knowing for session in serving(living, facts.queue)):
            continue
        jobs = f"{count(facts.jobs, 'job')} {'waits' if facts.jobs == 1 else 'wait'}"
        jobs = f"At least {jobs}" if facts.jobs >= MOST_JOBS else jobs
        severity = Severity.CRITICAL if facts.oldest >= UNATTENDED_LONG else Severity.WARNING
        found[facts.queue, facts.task] = Finding(
            severity if facts.oldest >= UNATTENDED else Severity.NOTE,
            "tasks",
            f"No worker of queue {facts.queue} knows the task {facts.task}",
            f"{jobs}; the first was enqueued {duration(facts.oldest)} ago. Was a module not imported, or "
            "a task renamed? Does an application run without a worker, or a cluster lack what the task needs?",
            f"{START} --queue {quote(facts.queue)}",
        )
    return found


def _queues(lanes: Sequence[LaneFacts], attended: Container[str]) -> list[Finding]:
    oldest: dict[str, LaneFacts] = {}
    for lane in lanes:
        if lane.oldest is not None:
            known = oldest.get(lane.queue)
            if known is None or known.oldest is None or lane.oldest > known.oldest:
                oldest[lane.queue] = lane
    findings = [
        _queue(lane, lane.oldest, attended=lane.queue in attended)
        for lane in oldest.values()
        if lane.oldest is not None
    ]
    bad = [finding for finding in findings if finding.severity > Severity.OK]
    good = [finding.title for finding in findings if finding.severity == Severity.OK]
    fine = "; ".join(good[:SHOWN]) if good else "no available job waits"
    if not bad or good:
        bad.append(Finding(Severity.OK, "queues", f"Queues: {fine}"))
    return few(bad, SHOWN, "queues")


def _queue(lane: LaneFacts, seconds: float, *, attended: bool) -> Finding:
    queue, ago = lane.queue, duration(seconds)
    where = f"priority {lane.priority}; the next job was enqueued {ago} ago"
    if lane.paused:
        return Finding(
            Severity.WARNING if seconds >= PAUSED_LONG else Severity.NOTE,
            "queues",
            f"Queue {queue} is paused, and jobs wait in it",
            where,
            f"rota queues resume {quote(queue)}",
        )
    if not attended:
        severity = Severity.CRITICAL if seconds >= UNATTENDED_LONG else Severity.WARNING
        return Finding(
            severity if seconds >= UNATTENDED else Severity.NOTE,
            "queues",
            f"No worker takes jobs from queue {queue}",
            where,
            f"{START} --queue {quote(queue)}",
        )
    if seconds >= BEHIND:
        return Finding(
            Severity.WARNING,
            "queues",
            f"Queue {queue} is behind: its next job was enqueued {ago} ago",
            f"priority {lane.priority}; workers are alive but do not keep up (a retry counts "
            "from its first enqueue). Start another worker.",
            f"{START} --queue {quote(queue)}",
        )
    return Finding(Severity.OK, "queues", f"{queue}: next job enqueued {ago} ago")


def _many_keys(queue: str, keys: int) -> Finding:
    return Finding(
        Severity.WARNING,
        "keys",
        f"Queue {queue} has jobs with {count(keys, 'key')} of limits and fair shares",
        "Every look of an idle worker and every count visits each key that has jobs: some ten "
        "microseconds each. Use keys with thousands of values, such as tenants, not one per job; to "
        'have at most one job for each of many things, use unique="…".',
    )


def _transfers(transfers: TransferFacts) -> list[Finding]:
    if transfers.oldest < LEFT:
        # A mover is at it.
        return []
    jobs = "a transfer" if transfers.transfers == 1 else f"{transfers.transfers} transfers"
    return [
        Finding(
            Severity.CRITICAL if transfers.oldest >= UNATTENDED_LONG else Severity.WARNING,
            "transfers",
            f"Jobs wait in {jobs} to another shard that no mover has finished",
            f"The first was begun {duration(transfers.oldest)} ago, and holds up to 500 jobs. Nothing is lost, and none "
            "of them runs before `rota shards move` is run again, for the key and to the target that its args name.",
            f"rota jobs show {transfers.job}",
        )
    ]


def _timers(overdue: float | None, living: list[SessionFacts]) -> Finding:
    if overdue is None or overdue < OVERDUE:
        return Finding(Severity.OK, "timers", "Delayed jobs and retries are staged in time")
    why = (
        "Workers are alive but do not stage: is there a lock, or is upkeep off in all of them?"
        if living
        else "Workers stage them, but none is alive."
    )
    return Finding(
        Severity.CRITICAL if overdue >= OVERDUE_LONG else Severity.WARNING,
        "timers",
        f"Delayed jobs and retries are overdue by {duration(overdue)}",
        why,
        START,
    )
