"""A job as text for people."""

from collections.abc import Sequence
from dataclasses import replace

from rota.doctor.why import NOTHING, Reason
from rota.model.flow import NEEDS, WANTED, Membership
from rota.model.headers import NODE
from rota.model.job import JobRecord, LogLine, Progress
from rota.model.memory import StepRecord, due
from rota.model.redaction import REDACTED, shown_args
from rota.model.states import State
from rota.terminal.advice import addressed
from rota.terminal.notes import note
from rota.terminal.output import Cell, brief, formatted, harmless, harmless_lines, moment, say
from rota.terminal.tables import Column, shortened

LONGEST_NOTE = 60
"""Characters of an error in a list; `rota jobs show` has all of it."""

SAID_OTHERWISE = {REDACTED, NODE, WANTED, NEEDS}
"""Headers that are not shown as they are."""

LEVELS = {"debug": "bright_black", "warning": "yellow", "error": "red", "dropped": "bright_black"}
"""Levels of a job's log lines that stand out."""

HEADINGS = (
    Column("id"),
    Column("state"),
    Column("queue"),
    Column("task"),
    Column("attempt", rank=1),
    Column("enqueued", rank=2),
    Column("note", spare=True, prose=True),
)


SUBJECT_HEADINGS = (
    Column("id"),
    Column("subject"),
    Column("state"),
    Column("task"),
    Column("rounds"),
    Column("last run", rank=1),
    Column("next run"),
    Column("note", spare=True, prose=True),
)


def subject_row(job: JobRecord) -> list[Cell]:
    """A job in a list of unique jobs: how often it came round, and when it comes round again."""
    return [
        job.id, job.unique_key or "", job.state, job.task, job.iteration, brief(job.last_run),
        brief(due(job)), note(job, LONGEST_NOTE),
    ]  # fmt: skip


def row(job: JobRecord) -> list[Cell]:
    """A job in a list, without its args: `show` has them."""
    attempt = f"{job.attempt}/{job.max_attempts}"
    return [
        job.id, job.state, job.queue, job.task, attempt, brief(job.enqueued_at), _note(job)
    ]  # fmt: skip


def _note(job: JobRecord) -> str:
    if job.state is State.SCHEDULED and (at := due(job)):
        return f"due {brief(at)}"
    return note(job, LONGEST_NOTE)


def say_details(
    job: JobRecord,
    steps: Sequence[StepRecord] = (),
    flow: Membership | None = None,
    why: Sequence[Reason] | None = None,
) -> None:
    """Print everything about a job.

    Args:
        job: What is known of it.
        steps: What it remembers.
        flow: The flow that it belongs to.
        why: Why it does not run; `None` for a job that runs or has ended.
    """
    say(f"Job {job.id}: {harmless(job.task)}", bold=True)
    timeout = "none" if job.timeout is None else f"{job.timeout:g} s"
    asked = ", asked to stop" if job.cancel_requested else ""
    for name, text in (
        ("state", f"{job.state}{asked}"),
        ("queue", job.queue),
        ("priority", str(job.priority)),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("timeout", timeout),
        ("enqueued", moment(job.enqueued_at)),
        ("due", moment(due(job))),
        ("finished", moment(job.finished_at)),
        ("worker", job.worker or ""),
        ("key", job.unique_key or ""),
        ("rounds", str(job.iteration) if job.iteration else ""),
        ("last run", moment(job.last_run)),
        ("flow", "" if flow is None else f"{flow.flow} ({flow.flow_name}), node {flow.node}"),
        *((name, text) for name, text in job.headers.items() if name not in SAID_OTHERWISE),
    ):
        if text:
            say(f"  {name:<9} {harmless(text)}")
    _say_why(job, why)
    if job.progress is not None:
        say(f"  {'progress':<9} {progress(job.progress)}")
    say_json_text("args", shown_args(job))
    if job.result is not None:
        say_json_text("result", job.result)
    for step in steps:
        say(f"  {step.kind:<9} {harmless(_step(step))}")
    if job.log:
        say()
        for line in job.log:
            say_line(line, indent=2)
    for error in job.errors:
        say()
        say(f"  Attempt {error.attempt} failed at {moment(error.at)}")
        # A traceback ends with the exception.
        text = f"{error.exception}: {error.message}" if not error.traceback else error.traceback
        for told in harmless_lines(text).splitlines():
            say(f"    {told}", fg="red" if not told.startswith(" ") else None)


def addressed_reason(reason: Reason) -> Reason:
    """The same reason, with a command that names the database."""
    return replace(reason, advice=addressed(reason.advice))


def _say_why(job: JobRecord, why: Sequence[Reason] | None) -> None:
    """Why the job does not run, each reason with its next step below it."""
    if why is None:
        return
    if not why and job.state is State.AVAILABLE:
        say(f"  {'why':<9} {NOTHING}")
    for number, reason in enumerate(map(addressed_reason, why)):
        jobs = f" (job {', '.join(map(str, reason.jobs))})" if reason.jobs else ""
        say(f"  {'' if number else 'why':<9} {harmless(reason.text)}{jobs}")
        if reason.advice:
            say(f"  {'':<9} → {harmless(reason.advice)}", fg="cyan")


def _step(step: StepRecord) -> str:
    """Such as "approved: waiting until 12:00:00"."""
    end = f" until {moment(step.until)}" if step.until and step.state != "done" else ""
    result = (
        f"  {shortened(step.result, LONGEST_NOTE)}" if step.result not in {None, "null"} else ""
    )
    return f"{step.name}: {step.state}{end}{result}"


def progress(told: Progress) -> str:
    """Such as "40 %  reading page 4"."""
    return f"{100 * told.fraction:.0f} %  {harmless(told.message)}".rstrip()


def say_line(line: LogLine, indent: int = 0) -> None:
    """Print a line of a job's log; its message may have several lines."""
    at = f"{line.at.astimezone():%H:%M:%S}"
    first, *rest = harmless_lines(line.message).splitlines() or [""]
    say(f"{'':<{indent}}{at} {line.level:<7} {first}", fg=LEVELS.get(line.level))
    for more in rest:
        say(f"{'':<{indent}}{'':<16} {more}", fg=LEVELS.get(line.level))


def say_json_text(name: str, text: str) -> None:
    """Print JSON under a name."""
    first, *rest = harmless_lines(formatted(text)).splitlines()
    say(f"  {name:<9} {first}")
    for line in rest:
        say(f"  {'':<9} {line}")
