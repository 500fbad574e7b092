"""The shop with all that belongs to it, for trying it out: `python manage.py up`."""

import signal
import subprocess
import sys

from django.core.management import BaseCommand, CommandParser, call_command


class Command(BaseCommand):
    """Migrates, and runs the web server and a worker until Ctrl-C."""

    help = "Bring the tables up to date, and run the web server and a worker until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where the web server listens."""
        parser.add_argument("address", nargs="?", default="127.0.0.1:8000")

    def handle(self, *, address: str, **_options: object) -> None:
        """Run both."""
        call_command("migrate", verbosity=0)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        # In a process group of its own: Ctrl-C is for this process, which then ends the worker.
        command = [sys.executable, sys.argv[0], "rota", "worker"]
        with subprocess.Popen(command, process_group=0) as worker:
            try:
                call_command("runserver", address, use_reloader=False)
            finally:
                worker.terminate()
