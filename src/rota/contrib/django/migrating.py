"""Rota's tables as a step of Django's migrations, which run Rota's own SQL.

Rota's migrations have numbers of their own, for each kind of database. One of Django's brings the
tables to such a version; where there are none they are made at the newest one, and where they are
newer already (by `rota migrate`, or a newer Rota) nothing happens. They go forward only: older code
works with newer tables. Back to zero removes the tables with all jobs.
"""

import re
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from django.db import router
from django.db.migrations.operations.base import Operation

from rota.contrib.django.address import default_alias
from rota.contrib.django.database import DjangoDatabase
from rota.database.through_django import ThroughDjango, django
from rota.errors import StoreError, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import PATIENCE, PAUSE

if TYPE_CHECKING:
    from rota.store.connections import Connection
    from rota.store.protocol import Store

LOCK_TIMEOUT = "55P03"


class RotaTables(Operation):
    """Brings Rota's tables to a version, on PostgreSQL and on SQLite.

    Args:
        postgres: The version on PostgreSQL.
        sqlite: The version on SQLite.
        first: Whether to go back from it is to remove the tables.
    """

    reduces_to_sql = True

    def __init__(self, *, postgres: int, sqlite: int, first: bool = False) -> None:
        self.postgres = postgres
        self.sqlite = sqlite
        self.first = first

    def describe(self) -> str:
        """What Django says of it."""
        return f"Rota's tables: version {self.postgres} on PostgreSQL, {self.sqlite} on SQLite"

    def state_forwards(self, app_label: str, state: Any) -> None:
        """No model changes: Rota has its tables for itself."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        """Make the tables, or bring them to the version."""
        del states
        alias = schema_editor.connection.alias
        if not _meant(alias, app_label):
            return
        store = DjangoDatabase(alias).store
        if schema_editor.collect_sql:
            for script in migrate.scripts(store, 0).values():
                schema_editor.execute(script, params=None)
            return
        # A name: `steps` are of the version that was found, and `migrate` asks for it, too.
        through = django(alias)
        version = self.postgres if store.name == "postgres" else self.sqlite
        there = migrate.version_of(store, cast("Connection", through))
        if there == 0:
            cast("Connection", through).run(store.check_server())
        for step, sql in migrate.steps(store, there).items():
            if there and step > version:
                break
            _apply(store, through, step, sql, there)
            there = step
        if store.name == "sqlite":
            # As workers need it; the first of them would have to wait until nothing uses the file.
            schema_editor.execute("PRAGMA journal_mode = WAL", params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        """Remove the tables at the first migration; else leave them: older code works with them."""
        del states
        alias = schema_editor.connection.alias
        if self.first and _meant(alias, app_label):
            for statement in removing(DjangoDatabase(alias).store):
                schema_editor.execute(statement, params=None)


def removing(store: "Store") -> list[str]:
    """The statements that remove Rota's tables, with all jobs."""
    if store.name == "postgres":
        return ["DROP SCHEMA IF EXISTS rota CASCADE"]
    schema = (files("rota.store.sqlite") / "schema.sql").read_text(encoding="utf-8")
    made = re.findall(r"^CREATE (TABLE|VIEW) (rota_\w+)", schema, re.MULTILINE)
    return [f"DROP {kind} IF EXISTS {name}" for kind, name in reversed(made)]


def _meant(alias: str, app_label: str) -> bool:
    return alias == default_alias() and bool(router.allow_migrate(alias, app_label))


def _apply(store: "Store", through: ThroughDjango, step: int, sql: str, there: int) -> None:
    """Apply one step; where others use the tables, try again for a minute.

    Raises:
        StoreUnavailable: They were in use all the time.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            through.run(store.migrate(step, sql, after=there))
        except StoreError as error:
            if not _locked(error):
                raise
            if time.monotonic() >= until:
                message = (
                    f"the tables that Rota's step {step} changes were in use by other sessions for "
                    f"{PATIENCE:g} seconds; end the long transactions that `manage.py rota doctor` "
                    "lists, and migrate again"
                )
                raise StoreUnavailable(message) from error
            time.sleep(PAUSE)
        else:
            return


def _locked(error: BaseException | None) -> bool:
    while error is not None:
        if LOCK_TIMEOUT in (getattr(error, "sqlstate", None), getattr(error, "pgcode", None)):
            return True
        error = error.__cause__
    return False
