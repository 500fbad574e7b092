"""One job: what it is, how it went, and why it does not run."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from rota.dashboard import shown
from rota.dashboard.access import Right
from rota.dashboard.message import NotThere, Page
from rota.dashboard.routes import Call
from rota.doctor.why import NOTHING, Facts, reasons, waits
from rota.model.flow import Membership
from rota.model.job import JobId, JobRecord, possible
from rota.model.memory import StepRecord, due


def job(call: Call) -> Page:
    """Everything about one job."""
    text = call.parts["id"]
    known = text.isascii() and text.isdigit() and possible(int(text))
    found = call.app.jobs.get([JobId(int(text))]) if known else []
    if not found:
        message = f"There is no job {text[:30]}: it was deleted, its retention is over, or it was never committed."
        raise NotThere(message)
    [record] = found
    remembered = call.app.job(record.id).steps()
    member = call.app.flows.memberships([record]).get(record.id)
    data = shown.in_full(record, call.app, call.request.access) | {
        "why": why(call, record, remembered, member),
        "timeline": timeline(record),
        "steps": steps(call, remembered),
        "flow": flow(member),
        "left_to_flow": record.id in call.app.flows.left_to_retry([record]),
    }
    extra = {
        "args_text": _text(data["args"]),
        "result_text": _text(data["result"]),
        "finished": record.state.finished,
        "nothing_holds": NOTHING,
    }
    return Page("job.html", f"Job {record.id}", data, extra)


def why(
    call: Call, record: JobRecord, remembered: Sequence[StepRecord], member: Membership | None
) -> list[dict[str, Any]]:
    """Why the job does not run; nothing for a job that runs or has ended."""
    if not waits(record):
        return []
    database, seen = call.app.database, call.looks.now()
    facts = Facts(
        job=record,
        now=datetime.now(UTC),
        paused=any(row.paused for row in seen.rows if row.name == record.queue),
        workers=seen.snapshot.workers,
        lanes=seen.snapshot.lanes,
        standing=database.run(database.store.standing(record.id)),
        steps=remembered,
        flow=member,
    )
    if not call.request.access.may(Right.ARGS) and facts.standing is not None:
        facts = replace(facts, standing=facts.standing.anonymous())
    return [
        msgspec.to_builtins(reason) | {"jobs": [str(one) for one in reason.jobs]}
        for reason in reasons(facts)
    ]


def steps(call: Call, remembered: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """What the job remembers; results belong to the args."""
    shown = call.request.access.may(Right.ARGS)
    found = [msgspec.to_builtins(one) | {"at": one.at, "until": one.until} for one in remembered]
    return [one | {"result": one["result"] if shown else None} for one in found]


def flow(member: Membership | None) -> dict[str, Any] | None:
    """The flow that the job belongs to, and its node there."""
    return member and {"id": str(member.flow), "name": member.flow_name, "node": member.node}


def timeline(record: JobRecord) -> list[dict[str, Any]]:
    """What happened to the job and when, as far as the database keeps it; the first first."""
    events = [(record.enqueued_at, "enqueued", "")]
    events += [
        (error.at, f"attempt {error.attempt} failed", error.exception.removeprefix("builtins."))
        for error in record.errors
    ]
    if record.last_run is not None:
        events.append((record.last_run, f"round {record.iteration} ended", ""))
    if record.progress is not None:
        events.append(
            (
                record.progress.at,
                "progress",
                f"{record.progress.fraction:.0%} {record.progress.message}",
            )
        )
    if record.finished_at is not None:
        events.append((record.finished_at, record.state.value, ""))
    if (at := due(record)) is not None:
        events.append((at, "due", ""))
    events.sort(key=lambda event: event[0])
    return [{"at": at, "what": what, "detail": detail} for at, what, detail in events]


def _text(value: msgspec.Raw | None) -> str | None:
    return None if value is None else bytes(value).decode(errors="replace")
