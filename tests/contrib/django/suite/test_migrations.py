"""Rota's tables by Django's migrations."""

from importlib import import_module
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from rota import SchemaMissing
from rota.contrib.django import rota
from rota.contrib.django.migrating import RotaTables
from rota.database.through_django import django
from rota.store import migrate
from rota.store.opening import open_store
from tests.contrib.django.suite.chores import note


class Migrations(TransactionTestCase):
    """Made, and removed again."""

    def tearDown(self) -> None:
        call_command("migrate", "rota", verbosity=0)
        super().tearDown()

    def test_newest(self) -> None:
        """The last of Rota's migrations, on both databases, has one of Django's."""
        operation = last_tables()
        self.assertEqual(operation.postgres, newest("postgresql://nowhere/x"))
        self.assertEqual(operation.sqlite, newest("sqlite:///nowhere.db"))

    def test_nothing_to_make(self) -> None:
        """`makemigrations` finds nothing that the migrations do not say."""
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)

    def test_sqlmigrate(self) -> None:
        """`sqlmigrate` shows Rota's own SQL."""
        shown = StringIO()
        call_command("sqlmigrate", "rota", "0001", stdout=shown)
        table = "rota.log" if connection.vendor == "postgresql" else "rota_job"
        self.assertIn(f"CREATE TABLE {table}", shown.getvalue())

    def test_zero_and_back(self) -> None:
        """Back to zero nothing of Rota's is left; forward again all is there."""
        note.enqueue(1)
        call_command("migrate", "rota", "zero", verbosity=0)
        self.assertEqual(left(), [])
        call_command("migrate", "rota", verbosity=0)
        through: Any = django("default")
        migrate.check(rota.database.store, through)
        note.enqueue(1)

    def test_tables_that_are_there(self) -> None:
        """Tables that `rota migrate` has made, and the jobs in them, are left as they are."""
        job = note.enqueue(1)
        call_command("migrate", "rota", "zero", fake=True, verbosity=0)
        call_command("migrate", "rota", verbosity=0)
        self.assertEqual(job.status, "available")

    def test_without_tables(self) -> None:
        """An enqueue without tables says what to do."""
        call_command("migrate", "rota", "zero", verbosity=0)
        rota.close()
        rota.database._ready = False
        with self.assertRaisesRegex(SchemaMissing, "run `manage.py migrate`"):
            note.enqueue(1)


def last_tables() -> RotaTables:
    """The last of Django's migrations that brings Rota's tables to a version."""
    from importlib.resources import files

    names = sorted(
        file.name.removesuffix(".py")
        for file in files("rota.contrib.django.migrations").iterdir()
        if file.name[0].isdigit()
    )
    found = [
        operation
        for name in names
        for operation in import_module(
            f"rota.contrib.django.migrations.{name}"
        ).Migration.operations
        if isinstance(operation, RotaTables)
    ]
    return found[-1]


def newest(url: str) -> int:
    """The newest version of Rota's tables on that kind of database."""
    return max(open_store(url).migrations())


def left() -> list[str]:
    """What is left of Rota's tables."""
    sql = "SELECT name FROM sqlite_master WHERE name LIKE 'rota%'"
    if connection.vendor == "postgresql":
        sql = "SELECT nspname FROM pg_namespace WHERE nspname = 'rota'"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [row[0] for row in cursor.fetchall()]
