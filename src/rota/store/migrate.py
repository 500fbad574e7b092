"""Bringing Rota's tables up to date: numbered, forward only, one transaction each."""

from rota.errors import SchemaMissing, SchemaOutdated, SchemaTooNew
from rota.store.connections import Connection
from rota.store.protocol import Store


def read_migrations(package: str) -> dict[int, str]:
    """The migrations of a backend's package by version: `migrations/0001_name.sql`, …."""
    from importlib.resources import files

    found = {}
    for file in (files(package) / "migrations").iterdir():
        if file.name.endswith(".sql"):
            found[int(file.name.split("_")[0])] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


def pending(store: Store, connection: Connection) -> dict[int, str]:
    """The migrations that the database still needs, by version.

    Raises:
        SchemaTooNew: The database was migrated by a newer Rota.
    """
    migrations = store.migrations()
    version = connection.run(store.schema_version())
    newest = max(migrations)
    if version > newest:
        message = (
            f"the database has Rota's schema version {version}, this Rota knows {newest}; "
            "upgrade Rota on this machine"
        )
        raise SchemaTooNew(message)
    return {number: sql for number, sql in migrations.items() if number > version}


def migrate(store: Store, connection: Connection) -> list[int]:
    """Apply what is pending; the versions that were applied.

    Raises:
        SchemaTooNew: The database was migrated by a newer Rota.
    """
    applied = []
    for version, sql in pending(store, connection).items():
        connection.run(store.migrate(version, sql))
        applied.append(version)
    return applied


def check(store: Store, connection: Connection) -> None:
    """Refuse to work on a schema of another version.

    Raises:
        SchemaMissing: There are no Rota tables.
        SchemaOutdated: The tables are older than this Rota.
        SchemaTooNew: The tables are newer than this Rota.
    """
    waiting = pending(store, connection)
    if 1 in waiting:
        message = "the database has no Rota tables yet; run `rota migrate`"
        raise SchemaMissing(message)
    if waiting:
        message = (
            f"the database's Rota tables are {len(waiting)} version(s) behind this Rota; "
            "run `rota migrate`"
        )
        raise SchemaOutdated(message)
