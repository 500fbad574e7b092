"""`manage.py rota …`: the command `rota` on the database of the project.

`manage.py rota worker` runs the project's tasks, those in modules named `tasks` of the apps among
them.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import autodiscover_modules


class Command(BaseCommand):
    """Forwards to Rota's command line."""

    help = "Rota's command line, on the database of this project: worker, jobs, queues, doctor, …"
    requires_system_checks: ClassVar[Sequence[str]] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Leave all arguments to Rota."""
        _forward(argv[2:])

    def add_arguments(self, parser: Any) -> None:
        """For `call_command("rota", "jobs", "list")`: whatever Rota takes."""
        parser.add_argument("args", nargs=argparse.REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """The same as a call.

        Raises:
            CommandError: The command has failed, and said why.
        """
        del options
        before = dict(os.environ)
        try:
            _forward([str(arg) for arg in args])
        except SystemExit as end:
            if end.code:
                message = f"`rota` ended with status {end.code}"
                raise CommandError(message) from end
        finally:
            os.environ.clear()
            os.environ.update(before)


def _forward(arguments: list[str]) -> None:
    from rota.contrib.django.app import rota
    from rota.contrib.forwarding import forward

    autodiscover_modules("tasks")
    forward(rota, arguments, "manage.py rota")
