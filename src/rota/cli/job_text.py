"""A job as text for people."""

from rota.model.job import JobRecord, LogLine, Progress
from rota.model.redaction import REDACTED, shown_args
from rota.model.states import State
from rota.terminal.output import Cell, brief, formatted, harmless, harmless_lines, moment, say
from rota.terminal.tables import Column, shortened

LONGEST_NOTE = 60
"""Characters of an error in a list; `rota jobs show` has all of it."""

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
        brief(job.scheduled_at), "" if job.state is State.SCHEDULED else _note(job),
    ]  # fmt: skip


def row(job: JobRecord) -> list[Cell]:
    """A job in a list, without its args: `show` has them."""
    attempt = f"{job.attempt}/{job.max_attempts}"
    return [
        job.id, job.state, job.queue, job.task, attempt, brief(job.enqueued_at), _note(job)
    ]  # fmt: skip


def _note(job: JobRecord) -> str:
    match job.state:
        case State.RUNNING:
            stopping = ", asked to stop" if job.cancel_requested else ""
            return f"on {job.worker}{stopping}" if job.worker else stopping.removeprefix(", ")
        case State.SCHEDULED:
            return f"due {brief(job.scheduled_at)}"
        case State.RETRYABLE | State.DISCARDED if job.errors:
            last = job.errors[-1]
            text = " ".join(f"{_class(last.exception)}: {last.message}".split())
            return shortened(text, LONGEST_NOTE)
    return ""


def say_details(job: JobRecord) -> None:
    """Print everything about a job."""
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
        ("due", moment(job.scheduled_at)),
        ("finished", moment(job.finished_at)),
        ("worker", job.worker or ""),
        ("key", job.unique_key or ""),
        ("rounds", str(job.iteration) if job.iteration else ""),
        ("last run", moment(job.last_run)),
        *((name, text) for name, text in job.headers.items() if name != REDACTED),
    ):
        if text:
            say(f"  {name:<9} {harmless(text)}")
    if job.progress is not None:
        say(f"  {'progress':<9} {progress(job.progress)}")
    say_json_text("args", shown_args(job))
    if job.result is not None:
        say_json_text("result", job.result)
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


def _class(exception: str) -> str:
    return exception.removeprefix("builtins.")
