"""The command `rota demo`."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import click

from rota.terminal.advice import not_empty
from rota.terminal.exits import FAILED, Failure
from rota.terminal.output import harmless, json_option, say_json

SESSION_TIMEOUT = 2.0
"""Seconds; the default for workers is 15."""


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes.  [default: 2 to 4, by cores]"
)
@click.option("--kill", is_flag=True, help="Kill one worker half-way (kill -9); others take over.")
@click.option(
    "--url",
    metavar="URL",
    callback=not_empty,
    help="Run on this database instead of a temporary SQLite file; its tables are brought up to "
    "date, and the demo's jobs deleted afterwards.",
)
@json_option
def demo(
    *, folder: Path | None, workers: int | None, kill: bool, url: str | None, as_json: bool
) -> None:
    """See Rota work on real input.

    One job is enqueued for each file of FOLDER, by default the Python standard library. Workers,
    real processes, compute the files' SHA-256 and store it as the jobs' results. At the end all
    results are compared with checksums computed directly. The exit status is 0 only if every job
    completed and every checksum is right.

    \b
    Examples:
      rota demo
      rota demo --kill --workers 3
      rota demo ~/Pictures --url postgresql:///test
    """
    from rota.cli.demo.course import Course, prepare, temporary_database
    from rota.cli.demo.files import find_files
    from rota.cli.demo.report import Report
    from rota.cli.demo.tasks import rota as app
    from rota.cli.demo.telling import teller
    from rota.store.url import shown

    workers = workers or max(2, min(4, os.cpu_count() or 1))
    if kill and workers == 1:
        message = "--kill needs at least --workers 2: another worker has to take over"
        raise click.UsageError(message)
    tell = teller(as_json=as_json)
    with ending_in_order(), temporary_database(url) as (address, temporary):
        prepare(app, address)
        with closing(app):
            found = find_files(folder)
            if not found.paths:
                message = f"there is no readable file in {found.folder}"
                raise Failure(message)
            report = Report(
                folder=str(found.folder),
                database=shown(url) if url else "sqlite, in a temporary folder",
                queue=f"demo-{secrets.token_hex(4)}",
                workers=workers,
                session_timeout=SESSION_TIMEOUT,
                kill=kill,
                jobs=len(found.paths),
                size=found.size,
                skipped=found.skipped,
            )
            tell.note(
                f"Checksums of {len(found.paths):,} files in {harmless(report.folder)}: a job for "
                f"each, {workers} workers, {report.database}."
            )
            if kill:
                tell.note(
                    "Half-way a worker will be killed. For the demo a worker counts as dead after "
                    f"{SESSION_TIMEOUT:g} s without a sign of life (by default after 15 s)."
                )
            if found.skipped:
                tell.note(f"Skipped {len(found.skipped)} unreadable, such as "
                          f"{harmless(found.skipped[0])}.", style="yellow")  # fmt: skip
            course = Course(app, found, report, tell)
            try:
                course.run(address, temporary)
            finally:
                if url:
                    course.clean_up()
    if as_json:
        say_json(report.as_json())
    else:
        tell.conclude(report)
    if not report.good:
        raise click.exceptions.Exit(FAILED)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the demo as Ctrl-C does: workers stopped, files removed."""

    def end(number: int, _frame: FrameType | None) -> None:
        message = f"stopped by {signal.Signals(number).name}"
        raise Failure(message, 128 + number)

    before = {
        number: signal.signal(number, end)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
