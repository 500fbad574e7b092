"""The command line of Rota as a command of a framework's own: `flask rota …`, `litestar rota …`.

It works on the database of the web application's app, and `worker` runs that app's tasks.
"""

import os

import click

from rota.app.app import Rota
from rota.store.opening import VARIABLE

app: Rota | None = None
"""The app whose command was called, for `rota worker`, which imports what it runs."""


def forwarded(rota: Rota, program: str) -> click.Command:
    """The command `rota` for the group of another program; `program` is how users call it: `flask rota`."""

    @click.command(
        "rota",
        short_help="The job queue: worker, migrate, jobs, queues, doctor, …",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> None:
        from rota.cli.main import cli

        global app  # noqa: PLW0603 - a process runs one command
        app = rota
        # Child processes and commands without --url work on the same database.
        os.environ[VARIABLE] = rota.url
        first, *rest = words or ("--help",)
        target = [f"{__name__}:app"] if first == "worker" else []
        cli.main(args=[first, *target, *rest], prog_name=program)

    return command
