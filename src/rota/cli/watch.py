"""`rota jobs watch`: one job until it has finished."""

import contextlib
from collections.abc import Callable, Iterator

import click
import msgspec

from rota.app.changes import Change
from rota.cli.options import ID, url_option
from rota.cli.watching import watching
from rota.model.job import AttemptError, JobRecord
from rota.model.states import State
from rota.terminal.exits import FAILED, Failure
from rota.terminal.output import json_option, say

Show = Callable[[Change], None]


@click.command()
@click.argument("job", metavar="ID", type=ID)
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
    ways = watching("job", url, as_json=as_json, programs=_json, terminal=_bar, lines=_lines)
    with ways as (rota, show):
        for change in rota.job(job).changes():
            show(change)
    record = change.record
    if record.state is not State.COMPLETED:
        why = f": {_error(record.errors[-1])}" if record.errors else ""
        raise Failure(f"job {job} was {record.state}{why}", FAILED)


# Three ways to show it ---------------------------------------------------------------------------


@contextlib.contextmanager
def _json() -> Iterator[Show]:
    from rota.terminal import documents

    def show(change: Change) -> None:
        known = documents.outcome(change.record) | {"log": list(change.lines)}
        click.echo(msgspec.json.encode(known).decode())

    yield show


@contextlib.contextmanager
def _lines() -> Iterator[Show]:
    from rota.cli import job_text

    def show(change: Change) -> None:
        _say_news(change)
        if change.progress is not None:
            say(job_text.progress(change.progress))
        if change.record.state.finished:
            _say_end(change.record)

    yield show


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

    def show(change: Change) -> None:
        now = change.record
        # Hide the bar while something else is printed.
        shown.stop()
        _say_news(change)
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


def _say_news(change: Change) -> None:
    """Say what has changed besides the progress."""
    from rota.cli import job_text
    from rota.terminal.output import harmless

    now = change.record
    if change.moved:
        worker = f", on {harmless(now.worker)}" if now.worker else ""
        asked = ", asked to stop" if now.cancel_requested else ""
        attempt = f", attempt {now.attempt} of {now.max_attempts}" if now.attempt else ""
        say(f"job {now.id} ({harmless(now.task)}) is {now.state}{attempt}{worker}{asked}")
    for error in change.errors if not now.state.finished else ():
        say(f"attempt {error.attempt} failed: {_error(error)}", fg="red")
    for line in change.lines:
        job_text.say_line(line)


def _say_end(now: JobRecord) -> None:
    from rota.cli import job_text

    if now.result is not None:
        job_text.say_json_text("result", now.result)


def _error(error: AttemptError) -> str:
    from rota.terminal.output import harmless

    return harmless(f"{error.exception}: {error.message}")
