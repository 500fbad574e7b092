"""What `manage.py check` says, and what `manage.py rota` does."""

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any
from unittest.mock import patch

from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import TransactionTestCase, override_settings
from shop.models import Order

from rota import State
from rota.contrib.django import DjangoRota, rota
from rota.contrib.django.address import address
from rota.errors import ConfigError
from rota.store.postgres.url import read_url
from tests.contrib.django.suite import chores
from tests.contrib.django.suite.running import WorkerTestCase


def found(**options: Any) -> set[str]:
    """The ids of Rota's own messages."""
    messages = checks.run_checks(**options)
    return {str(message.id) for message in messages if str(message.id).startswith("rota.")}


class Checks(TransactionTestCase):
    """What is wrong with a project's settings."""

    def test_in_order(self) -> None:
        """The example has nothing to be said of."""
        self.assertEqual(found(databases=["default"]), set())

    @override_settings(ROTA_DATABASE="jobs")
    def test_wrong_alias(self) -> None:
        """An alias that is none is an error."""
        self.assertIn("rota.E001", found())
        with self.assertRaisesRegex(ConfigError, "'jobs' is no alias in the setting DATABASES"):
            DjangoRota()

    def test_options(self) -> None:
        """Options of a backend that cannot be used are errors."""
        for options, error in (({"retension": 1}, "rota.E002"), ({"retention": -1}, "rota.E003")):
            backend = {"BACKEND": "rota.contrib.django.backend.RotaBackend", "OPTIONS": options}
            with override_settings(TASKS={"default": backend}):
                self.assertIn(error, found())

    def test_unmigrated(self) -> None:
        """Missing tables are told where the database is looked at."""
        call_command("migrate", "rota", "zero", verbosity=0)
        try:
            self.assertEqual(found(databases=["default"]), {"rota.W004"})
            self.assertEqual(found(), set())
            with patch.object(sys, "argv", ["manage.py", "migrate"]):  # which makes them
                self.assertEqual(found(databases=["default"]), set())
        finally:
            call_command("migrate", "rota", verbosity=0)

    def test_deploy(self) -> None:
        """With `--deploy` it says what ATOMIC_REQUESTS means for enqueueing."""
        self.assertIn("rota.I001", found(include_deployment_checks=True))
        said = connections["default"].settings_dict
        said["ATOMIC_REQUESTS"] = True
        try:
            self.assertNotIn("rota.I001", found(include_deployment_checks=True))
        finally:
            said["ATOMIC_REQUESTS"] = False

    @override_settings(DATABASE_ROUTERS=["tests.contrib.django.suite.test_checks.Elsewhere"])
    def test_models_elsewhere(self) -> None:
        """Where no model is written to the database of the jobs, none of them joins a transaction."""
        self.assertIn("rota.W001", found())

    def test_process_executor(self) -> None:
        """A task in a child process is told to do without Django."""
        rota.task(name="in a child", executor="process")(_compute)
        try:
            self.assertIn("rota.W002", found())
        finally:
            del rota.tasks["in a child"]

    def test_many_priorities(self) -> None:
        """Many distinct priorities are told to be many lanes."""
        for priority in range(1, 10):
            rota.task(name=f"priority {priority}", priority=priority)(_compute)
        try:
            self.assertIn("rota.W003", found())
        finally:
            for priority in range(1, 10):
                del rota.tasks[f"priority {priority}"]


class Addresses(TransactionTestCase):
    """From an entry of DATABASES to a URL."""

    def test_postgres(self) -> None:
        """What Django is told of PostgreSQL, libpq is told, too; passwords with any characters."""
        if connections["default"].vendor != "postgresql":
            self.skipTest("Django has no PostgreSQL here")
        said = connections["default"].settings_dict
        before = dict(said)
        said |= {
            "USER": "ada", "PASSWORD": "a/b?c=d&e%", "HOST": "db", "PORT": 5433,
            "DISABLE_SERVER_SIDE_CURSORS": True,
            "OPTIONS": {"sslmode": "require", "pool": True, "server_side_binding": True},
        }  # fmt: skip
        try:
            url = address("default")
        finally:
            said.clear()
            said |= before
        from psycopg.conninfo import conninfo_to_dict

        readable, pooled = read_url(url)
        self.assertTrue(pooled)
        self.assertEqual(
            conninfo_to_dict(readable),
            {
                "dbname": before["NAME"], "user": "ada", "password": "a/b?c=d&e%", "host": "db",
                "port": "5433", "sslmode": "require",
            },
        )  # fmt: skip


class Command(WorkerTestCase):
    """`manage.py rota`."""

    def run_command(self, *arguments: str) -> str:
        """What it prints."""
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(StringIO()):
            call_command("rota", *arguments)
        return out.getvalue()

    def test_looks_at_the_projects_database(self) -> None:
        """The commands work on the database of the settings."""
        before = dict(os.environ)
        job = chores.note.using(queue=self.queue).enqueue(1)
        shown = self.run_command("jobs", "list", "--queue", self.queue, "--json")
        self.assertEqual([each["id"] for each in json.loads(shown)["jobs"]], [job.id])
        self.assertEqual(dict(os.environ), before)
        self.run_command("jobs", "cancel", str(job.id))
        self.assertEqual(job.status, State.CANCELLED)

    def test_worker(self) -> None:
        """`manage.py rota worker` runs the project's tasks, without being told which app."""
        Order.objects.create(email="a@example.org", cents=1)
        result = chores.wait_and_count.using(queue_name=self.queue).enqueue()
        self.run_command("worker", "--drain", "--queue", self.queue)
        result.refresh()
        self.assertEqual(result.return_value, 1)

    def test_commands_that_need_an_app(self) -> None:
        """`manage.py rota` is the app's own: no command has to be told which."""
        name = f"{self.queue}-entry"
        args = ("--task", chores.note.name, "--args", "[1]")
        self.run_command("cron", "add", name, "@daily", *args)
        self.run_command("cron", "remove", name)
        chores.note.using(queue=self.queue).enqueue(1)
        self.assertNotIn("code says otherwise", self.run_command("queues", "show", self.queue))

    def test_failure(self) -> None:
        """A failure of Rota's command is one of Django's."""
        with self.assertRaisesRegex(CommandError, "status 1"):
            self.run_command("jobs", "show", "999999999")


class Elsewhere:
    """A router that sends all models to another database."""

    def db_for_write(self, model: Any, **hints: Any) -> str:
        del model, hints
        return "elsewhere"


def _compute() -> None: ...
