"""The command line of Rota as a command of a framework's own: `flask rota …`, `manage.py rota …`.

It works on the database of the framework's app, and `worker` runs that app's tasks.
"""

import os
from collections.abc import Sequence

import click

from rota.app.app import Rota
from rota.store.url import VARIABLE


def forwarded(rota: Rota, program: str) -> click.Command:
    """The command `rota` for another program's group; users call it by `program`: `flask rota`."""

    @click.command(
        "rota",
        short_help="The job queue: worker, migrate, jobs, queues, doctor, …",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> None:
        forward(rota, words or ("--help",), program)

    return command


def forward(rota: Rota, words: Sequence[str], program: str) -> None:
    """Run the command line with these words, for this app.

    Raises:
        SystemExit: It has ended.
    """
    from rota.cli.main import cli

    # Child processes and commands without --url work on the same database.
    os.environ[VARIABLE] = rota.url
    cli.main(args=[*words], prog_name=program, obj=rota)
