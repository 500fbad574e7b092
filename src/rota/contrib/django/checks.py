"""What `manage.py check` says of Rota; `--database default` looks at the tables as well."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.core.checks import CheckMessage, Error, Info, Warning  # noqa: A004 - Django's names
from django.db import Error as DatabaseError
from django.db import connections, router

from rota.contrib.django.address import address, default_alias
from rota.errors import ConfigError, RotaError, SchemaMissing, SchemaOutdated
from rota.model.durations import seconds

if TYPE_CHECKING:
    from rota.contrib.django.backend import RotaBackend
    from rota.store.connections import Connection

PRIORITIES = 8
"""Distinct priorities of tasks from which on each claim has many lanes to look at."""


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """The alias, and what the project's settings mean for enqueueing."""
    del kwargs
    alias = default_alias()
    try:
        address(alias)
    except ConfigError as error:
        hint = "Set ROTA_DATABASE to the alias of a PostgreSQL or SQLite database."
        return [Error(str(error), hint=hint, id="rota.E001")]
    return [*_models_elsewhere(alias), *_children()]


def check_transactions(**kwargs: Any) -> list[CheckMessage]:
    """With `--deploy`: what the settings of the database mean for enqueueing."""
    del kwargs
    return list(_transactions(default_alias()))


def check_database(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """The tables, where the database is checked; not before `manage.py migrate` makes them."""
    del kwargs
    alias = default_alias()
    if alias not in (databases or ()) or sys.argv[1:2] == ["migrate"]:
        return []
    from rota.contrib.django.app import rota
    from rota.database.through_django import django
    from rota.store import migrate

    try:
        migrate.check(rota.database.store, cast("Connection", django(alias)))
    except (SchemaMissing, SchemaOutdated) as error:
        message, _, _ = str(error).partition("; run ")
        hint = f"Run `manage.py migrate --database {alias}`."
        return [Warning(message, hint=hint, id="rota.W004")]
    except (RotaError, DatabaseError) as error:
        return [Warning(f"Rota's tables: {error}", id="rota.W004")]
    return []


def check_backend(backend: "RotaBackend") -> Iterator[CheckMessage]:
    """The options of a backend of Django's tasks, and the priorities of its tasks."""
    if unknown := backend.options.keys() - {"retention"}:
        yield Error(
            f"TASKS[{backend.alias!r}]: OPTIONS has unknown {', '.join(sorted(unknown))}",
            hint="The only option is retention: how long results are kept, in seconds or as a timedelta.",
            id="rota.E002",
        )
    try:
        seconds(backend.retention, "retention")
    except ConfigError as error:
        yield Error(f"TASKS[{backend.alias!r}]: {error}", id="rota.E003")
    priorities = {task.options.priority for task in backend.app.tasks.values()}
    if len(priorities) > PRIORITIES:
        yield Warning(
            f"the tasks have {len(priorities)} different priorities, and each is another lane in every "
            "queue for claims to look at",
            hint="A few, such as -50, 0 and 50, do as well.",
            id="rota.W003",
        )


def _models_elsewhere(alias: str) -> Iterator[CheckMessage]:
    """Writes of the models in another database cannot share a transaction with their jobs."""
    from django.apps import apps

    mine = {model for model in apps.get_models() if model._meta.managed}  # noqa: SLF001
    elsewhere = {router.db_for_write(model) for model in mine} - {alias}
    if mine and all(router.db_for_write(model) != alias for model in mine):
        yield Warning(
            f"no model is written to the database {alias!r}, which has Rota's jobs, only to "
            f"{', '.join(sorted(elsewhere))}: jobs cannot join transactions there",
            hint="Set ROTA_DATABASE to the alias where the models are.",
            id="rota.W001",
        )


def _transactions(alias: str) -> Iterator[CheckMessage]:
    said = connections[alias].settings_dict
    if not said.get("ATOMIC_REQUESTS"):
        yield Info(
            f"DATABASES[{alias!r}] has no ATOMIC_REQUESTS: outside of atomic() a job is stored at once, "
            "and stays if the view fails after that",
            hint="Enqueue in the atomic() block that writes what the job is about.",
            id="rota.I001",
        )
    sqlite = connections[alias].vendor == "sqlite"
    if sqlite and (said.get("OPTIONS") or {}).get("transaction_mode") not in {
        "IMMEDIATE",
        "EXCLUSIVE",
    }:
        yield Info(
            f"DATABASES[{alias!r}] begins transactions as readers: on SQLite, a transaction that writes "
            "later may fail with `database is locked` while workers write",
            hint='Set OPTIONS = {"transaction_mode": "IMMEDIATE"}.',
            id="rota.I002",
        )


def _children() -> Iterator[CheckMessage]:
    """A child process begins without Django, whose connections must not be shared either."""
    from rota import Executor
    from rota.contrib.django.app import rota

    for task in rota.tasks.values():
        if task.executor is Executor.PROCESS:
            yield Warning(
                f"the task {task.name} has executor='process': its child does not set up Django, and has "
                "none of this process's connections",
                hint="Keep it and its module free of models, or use a thread.",
                id="rota.W002",
            )
