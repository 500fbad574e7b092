"""`rota jobs watch`: one job until it has finished."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from rota.cli.options import url_option
from rota.errors import StoreUnavailable
from rota.model.job import LARGEST_ID, JobId, JobRecord, LogLine
from rota.model.states import State
from rota.terminal.exits import FAILED, INTERRUPTED, Failure
from rota.terminal.output import json_option, on_terminal, say

if TYPE_CHECKING:
    from rota.cli.database import Database

PACE = 0.5
"""Seconds between two looks; handlers' notes are stored about once a second. A job's end is heard."""

Show = Callable[[JobRecord, JobRecord | None], None]
"""Shows a job as it is now, given how it was before."""


@click.command()
@click.argument("job", metavar="ID", type=click.IntRange(1, LARGEST_ID))
@url_option
@json_option
def watch(*, job: int, url: str | None, as_json: bool) -> None:
    """Watch a job: its state, its progress and its log lines, until it has finished.

    Ctrl-C ends the watching; the job goes on.

    \b
    Examples:
      rota jobs watch 4711
      rota jobs watch 4711 --json      one JSON object in each line, for each change

    \b
    Exit status:
      0    the job was completed
      1    the job was discarded or cancelled, or does not exist
      130  stopped by Ctrl-C
    """
    from rota.cli.database import database

    way = _json() if as_json else _bar() if on_terminal() else contextlib.nullcontext(_lines)
    before: JobRecord | None = None
    try:
        with database(url) as rota, way as show:
            for record in looks(rota, JobId(job)):
                if record != before:
                    show(record, before)
                before = record
    except KeyboardInterrupt:
        message = "stopped watching by Ctrl-C; the job goes on"
        raise Failure(message, INTERRUPTED) from None
    if before is not None and before.state is not State.COMPLETED:
        why = f": {_error(before)}" if before.errors else ""
        raise Failure(f"job {job} was {before.state}{why}", FAILED)


def looks(rota: "Database", job: JobId) -> Iterator[JobRecord]:
    """The job as it is at each look; the last time when it has finished.

    Raises:
        Failure: The job does not exist.
    """
    from rota.model.notes import with_notes

    store = rota.store
    with contextlib.closing(store.listener()) as listener:
        while True:
            listener.listen()
            found = listener.connection.run(store.get([job]))
            # After the job: the notes are complete if it has ended.
            notes = listener.connection.run(store.notes([job]))
            if not found:
                message = f"job {job} does not exist (it may have been deleted)"
                raise Failure(message, FAILED)
            record = with_notes(found[0], notes.get(job, ()))
            yield record
            if record.state.finished:
                return
            # If the connection is lost meanwhile, the next look opens another.
            with contextlib.suppress(StoreUnavailable):
                listener.wait(PACE)


def new_lines(now: JobRecord, before: JobRecord | None) -> list[LogLine]:
    """The log lines that were not there before."""
    shown = set() if before is None else {(line.lease, line.number) for line in before.log}
    return [line for line in now.log if (line.lease, line.number) not in shown]


# Three ways to show it ---------------------------------------------------------------------------


@contextlib.contextmanager
def _json() -> Iterator[Show]:
    from rota.cli import job_text

    def show(now: JobRecord, before: JobRecord | None) -> None:
        known = job_text.outcome(now) | {"log": new_lines(now, before)}
        click.echo(msgspec.json.encode(known).decode())

    yield show


def _lines(now: JobRecord, before: JobRecord | None) -> None:
    """Line by line, for pipes and logs."""
    from rota.cli import job_text

    _say_news(now, before)
    if now.progress is not None and (before is None or now.progress != before.progress):
        say(job_text.progress(now.progress))
    if now.state.finished:
        _say_end(now)


@contextlib.contextmanager
def _bar() -> Iterator[Show]:
    """A bar on the terminal's last line, and the news above it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from rota.cli import job_text
    from rota.terminal.output import harmless

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[message]}", markup=False),
    )  # fmt: skip
    console = Console(highlight=False)
    shown = Progress(*columns, console=console, transient=True)
    bar = shown.add_task("", total=None, message="")

    def show(now: JobRecord, before: JobRecord | None) -> None:
        # Hide the bar while something else is printed.
        shown.stop()
        _say_news(now, before)
        if now.state.finished:
            if now.progress is not None:
                say(job_text.progress(now.progress))
            _say_end(now)
            return
        progress = now.progress
        # The progress of an earlier attempt says nothing about this attempt.
        if progress is not None and progress.attempt != now.attempt:
            progress = None
        shown.update(
            bar,
            description=now.state.value,
            total=None if progress is None else 1.0,
            completed=0.0 if progress is None else progress.fraction,
            message="" if progress is None else harmless(progress.message),
        )
        shown.start()

    try:
        yield show
    finally:
        shown.stop()


def _say_news(now: JobRecord, before: JobRecord | None) -> None:
    """Say what has changed besides the progress."""
    from rota.cli import job_text
    from rota.terminal.output import harmless

    def moves(job: JobRecord) -> tuple[object, ...]:
        return job.state, job.attempt, job.worker, job.cancel_requested

    if before is None or moves(now) != moves(before):
        worker = f", on {harmless(now.worker)}" if now.worker else ""
        asked = ", asked to stop" if now.cancel_requested else ""
        attempt = f", attempt {now.attempt} of {now.max_attempts}" if now.attempt else ""
        say(f"job {now.id} ({harmless(now.task)}) is {now.state}{attempt}{worker}{asked}")
    if before is not None and len(now.errors) > len(before.errors) and not now.state.finished:
        say(f"attempt {now.errors[-1].attempt} failed: {_error(now)}", fg="red")
    for line in new_lines(now, before):
        job_text.say_line(line)


def _say_end(now: JobRecord) -> None:
    from rota.cli import job_text

    if now.result is not None:
        job_text.say_json_text("result", now.result)


def _error(job: JobRecord) -> str:
    from rota.terminal.output import harmless

    last = job.errors[-1]
    return harmless(f"{last.exception}: {last.message}")
