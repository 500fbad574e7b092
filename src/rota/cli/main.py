"""The command `rota`."""

import contextlib
import errno
import os
import sys

import click

import rota
from rota.cli.lazy import Lazy, LazyGroup
from rota.terminal.exits import FAILED, Reporting, complain

COMMANDS = {
    "demo": Lazy("rota.cli.demo.command:demo", "See it work: checksum a folder with workers."),
    "worker": Lazy("rota.cli.worker:worker", "Run the jobs of an app's tasks."),
    "migrate": Lazy("rota.cli.migrate:migrate", "Bring the database's tables up to date."),
    "jobs": Lazy("rota.cli.jobs:jobs", "List, show, watch, retry, cancel and delete jobs."),
    "flows": Lazy(
        "rota.cli.flows:flows",
        "List, show, watch, cancel and retry flows: jobs that wait for jobs.",
    ),
    "queues": Lazy("rota.cli.queues:queues", "List, pause, resume, set up and clear queues."),
    "shards": Lazy("rota.cli.shards:shards", "Move a key's jobs from one database to another."),
    "limits": Lazy("rota.cli.limits:limits", "List the limits, and how full each is."),
    "workers": Lazy(
        "rota.cli.workers:workers", "List the workers, what runs there, and since when."
    ),
    "history": Lazy(
        "rota.cli.history:history", "Show what happened lately, minute by minute, for up to a week."
    ),
    "cron": Lazy("rota.cli.cron:cron", "List cron entries; add, change, pause and run them."),
    "top": Lazy("rota.cli.top:top", "Watch queues, rates and workers live."),
    "dashboard": Lazy(
        "rota.cli.dashboard:dashboard", "Look after jobs in a browser, on this machine."
    ),
    "metrics": Lazy(
        "rota.cli.metrics:metrics", "Serve a database's metrics to Prometheus, for all workers."
    ),
    "audit": Lazy("rota.cli.audit:audit", "List what people did on the dashboard."),
    "doctor": Lazy(
        "rota.cli.doctor:doctor", "Find out what is wrong with the database, and what to do."
    ),
    "supervise": Lazy("rota.cli.supervise:supervise", "End transactions that are open too long."),
    "bench": Lazy("rota.cli.bench.command:bench", "Measure how fast Rota is on your database."),
}

DISTRIBUTIONS = {"lab": "rota-lab"}
"""Which distributions add commands by the entry point `rota.commands`."""

UNWRITTEN = frozenset({errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC})
"""What is wrong when nothing can be printed; a reader that goes away is click's business."""


class Root(Reporting, LazyGroup):
    """The outermost group."""


@click.group(
    cls=Root,
    commands_by_name=COMMANDS,
    plugins="rota.commands",
    distributions=DISTRIBUTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(rota.__version__, prog_name="rota")
def cli() -> None:
    """A job queue that lives in the database you already have.

    \b
    Which database: --url of each command, else the variable ROTA_DATABASE_URL,
    else the file rota.db in the current folder (sqlite:///rota.db).

    \b
    Examples:
      rota demo                      see real jobs run, on a database of its own
      rota migrate --url postgresql:///shop
      rota worker shop.tasks:rota    run the jobs of the app `rota` in shop/tasks.py
      rota jobs list --state discarded

    \b
    Exit status:
      0    done
      1    what was asked for is wrong, or failed: an unknown job, a checksum that differs
      2    the command line or a setting cannot be used
      3    the database cannot be reached, or refuses
      4    the database's Rota tables are missing, older or newer than this Rota
      130  stopped by Ctrl-C

    `rota doctor` ends with how bad its findings are: 0 all in order, 1 a warning, 2 critical.
    """


def main() -> None:
    """The entry point."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        cli.main(prog_name="rota")
    except OSError as error:
        if error.errno not in UNWRITTEN or error.filename is not None:
            raise
        complain(f"the output cannot be written: {os.strerror(error.errno or 0)}")
        # Or the interpreter would try again at its end, and say so in many lines.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)


def _open_streams() -> None:
    """Open the standard streams that are closed: no database file must get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Output for reading alone: who prints something fails, and who prints nothing does not.
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))
