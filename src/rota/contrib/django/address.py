"""From an alias of Django's DATABASES to the URL by which workers reach the same database."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from rota.errors import ConfigError

IN_MEMORY = "sqlite:////dev/null/in-memory-database-of-django"
"""Stands for a database that only Django's own connections reach: that of a test."""

DJANGOS_OWN = {"server_side_binding", "isolation_level", "pool", "assume_role", "cursor_factory", "context"}  # fmt: skip
"""Options of Django's connections that mean nothing to libpq."""


def default_alias() -> str:
    """The alias whose database has Rota's tables: the setting ROTA_DATABASE, else "default"."""
    alias: str = getattr(settings, "ROTA_DATABASE", DEFAULT_DB_ALIAS)
    return alias


def address(alias: str) -> str:
    """The URL of the database of that alias, as Django's connections have it now.

    Django's tests change the names of databases when they begin and end.

    Raises:
        ConfigError: There is no such alias, or Rota does not support that kind of database.
    """
    try:
        connection = connections[alias]
    except connections.exception_class as error:
        known = ", ".join(connections)
        message = f"{alias!r} is no alias in the setting DATABASES; there are: {known}"
        raise ConfigError(message) from error
    match connection.vendor:
        case "sqlite":
            return _sqlite(connection.settings_dict)
        case "postgresql":
            return _postgres(connection.settings_dict)
        case _:
            pass
    message = (
        f"the database {alias!r} is {connection.display_name}, but Rota keeps jobs in PostgreSQL or "
        "SQLite; name another alias in the setting ROTA_DATABASE"
    )
    raise ConfigError(message)


def _sqlite(said: dict[str, Any]) -> str:
    name = str(said["NAME"])
    if ":memory:" in name or "mode=memory" in name:
        return IN_MEMORY
    return f"sqlite:///{quote(str(Path(name).absolute()))}"


def _postgres(said: dict[str, Any]) -> str:
    parts = {
        "dbname": said.get("NAME"),
        "user": said.get("USER"),
        "password": said.get("PASSWORD"),
        "host": said.get("HOST"),
        "port": said.get("PORT"),
        # Django's own setting for a pooler that gives each transaction another connection.
        "pooler": "transaction" if said.get("DISABLE_SERVER_SIDE_CURSORS") else None,
    }
    options = said.get("OPTIONS") or {}
    parts |= {name: value for name, value in options.items() if name not in DJANGOS_OWN}
    given = {name: str(value) for name, value in parts.items() if value not in (None, "")}
    return f"postgresql://?{urlencode(given, quote_via=quote, safe='/')}"
