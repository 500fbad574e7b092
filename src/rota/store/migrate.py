"""Bringing Rota's tables up to date: numbered steps, forward only, one transaction each.

A backend's package has its tables in `schema.sql`, which makes a new database in one step, and in
`migrations/` the way there for a database that exists: `0013_name.sql` leads from version 12 to 13.
`migrations/before/` has the way of databases that were made before the first release. `step.sql` is
the frame of a step that a person applies.
"""

import re
import time
from collections.abc import Callable, Mapping

from rota.errors import ConfigError, SchemaMissing, SchemaOutdated, SchemaTooNew, StoreUnavailable
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.url import migrating, shown

PATIENCE = 60.0
"""Seconds within which all locks must have been free."""

PAUSE = 1.0
"""Seconds between two attempts, in which the statements that waited behind the first go on."""

CREATED = re.compile(r"^CREATE (TABLE|VIEW) ([\w.]+)", re.MULTILINE)


def read_steps(package: str, newest: int, version: int) -> dict[int, str]:
    """The SQL that leads a backend's tables from a version to the newest, by the version of each step.

    Where there are no tables, at version 0, it is one step.
    """
    from importlib.resources import files

    if version == 0:
        return {newest: (files(package) / "schema.sql").read_text(encoding="utf-8")}
    found = read_migrations(package)
    return {number: sql for number, sql in found.items() if number > version}


def read_migrations(package: str) -> dict[int, str]:
    """All files of a backend's `migrations/` by the version that they lead to, in this order."""
    from importlib.resources import files

    found = {}
    for folder in ("migrations", "migrations/before"):
        for file in (files(package) / folder).iterdir():
            if file.name.endswith(".sql"):
                found[int(file.name.split("_")[0])] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


def read_names(package: str) -> dict[str, str]:
    """The tables and views that a backend has in any version, oldest first: `TABLE` or `VIEW`."""
    from importlib.resources import files

    now = (files(package) / "schema.sql").read_text(encoding="utf-8")
    texts = [now, *read_migrations(package).values()]
    return {name: kind for text in texts for kind, name in CREATED.findall(text)}


def read_script(package: str, **parts: object) -> str:
    """A backend's `step.sql` with what one migration needs."""
    from importlib.resources import files

    return (files(package) / "step.sql").read_text(encoding="utf-8").format(**parts)


def version_of(store: Store, connection: Connection) -> int:
    """The version of the tables; 0: none. It may be newer than this Rota, which works with it then.

    Raises:
        SchemaIncomplete: There are tables, and their version is missing.
        SchemaTooNew: A newer Rota has migrated them, and taken away what this Rota uses.
    """
    version = connection.run(store.schema_version())
    newest = max(store.migrations())
    if version > newest and (oldest := connection.run(store.oldest_code())) > newest:
        message = (
            f"the database's Rota tables have version {version} and need a Rota that knows version "
            f"{oldest}, but this Rota knows {newest}; upgrade Rota on this machine"
        )
        raise SchemaTooNew(message)
    return version


def steps(store: Store, version: int) -> Mapping[int, str]:
    """The migrations that a database of this version still needs; 0: it has no tables.

    Raises:
        SchemaOutdated: The database is so old that this Rota does not know the way any more.
    """
    newest = max(store.migrations())
    waiting = store.migrations(version)
    if 0 < version < newest and version + 1 not in waiting:
        message = (
            f"the database has Rota's schema version {version}, but this Rota can only migrate "
            f"from version {min(waiting, default=newest + 1) - 1} on; run `rota migrate` of an older Rota first"
        )
        raise SchemaOutdated(message)
    return waiting


def migrate(
    store: Store,
    connection: Connection,
    *,
    to: int | None = None,
    patience: float = PATIENCE,
    waiting: Callable[[], None] = lambda: None,
) -> list[int]:
    """Apply what is pending, up to the version `to`; the versions that were applied.

    Where others use the tables, it tries again for so many seconds; `waiting` is called once, when
    that begins.

    Raises:
        StoreUnavailable: The tables were in use all the time.
        SchemaIncomplete: There are tables, and their version is missing.
        SchemaTooNew: A newer Rota has taken away what this Rota uses.
        SchemaOutdated: The database is so old that this Rota does not know the way any more.
        ConfigError: There is no way to the version `to`, or the database cannot hold the tables.
    """
    there = version_of(store, connection)
    if there == 0:
        connection.run(store.check_server())
    applied = []
    until = time.monotonic() + patience
    told = False
    for version, sql in _way(store, there, to).items():
        while not connection.run(store.migrate(version, sql, after=there)):
            if time.monotonic() >= until:
                raise StoreUnavailable(_in_use(version, there, patience))
            if not told:
                waiting()
                told = True
            time.sleep(PAUSE)
        applied.append(there := version)
    return applied


def _way(store: Store, there: int, to: int | None) -> Mapping[int, str]:
    waiting = steps(store, there)
    if to is None or to == there or to in waiting:
        return {version: sql for version, sql in waiting.items() if to is None or version <= to}
    known = ", ".join(map(str, waiting)) or "none"
    message = (
        f"migrate(to={to!r}): no migration leads there from version {there}; this Rota can bring the "
        f"tables to: {known}"
    )
    raise ConfigError(message)


def scripts(store: Store, version: int) -> dict[int, str]:
    """The migrations that a database of this version still needs, for the database's own client.

    Each is applied as a whole or not at all, in whatever way it is sent, and records its version.
    """
    made = {}
    there = version
    for number, sql in steps(store, version).items():
        made[number] = store.script(number, sql, after=there)
        there = number
    return made


def check(store: Store, connection: Connection) -> None:
    """Refuse to work on older tables, and on newer ones that have lost what this Rota uses.

    Raises:
        SchemaMissing: There are no Rota tables.
        SchemaIncomplete: There are tables, and their version is missing.
        SchemaOutdated: The tables are older than this Rota.
        SchemaTooNew: A newer Rota has taken away what this Rota uses.
    """
    version = version_of(store, connection)
    waiting = steps(store, version)
    if version == 0:
        message = f"{shown(store.url)} has no Rota tables yet; run `{migrating(store.url)}`"
        raise SchemaMissing(message)
    if waiting:
        message = (
            f"the Rota tables of {shown(store.url)} are {len(waiting)} version(s) behind this Rota; "
            f"run `{migrating(store.url)}`"
        )
        raise SchemaOutdated(message)


def _in_use(version: int, there: int, patience: float) -> str:
    state = f"still have version {there}" if there else "are not created yet"
    return (
        f"Rota's tables {state}: what version {version} changes was in use by other sessions for "
        f"{patience:g} seconds; end the long transactions that `rota doctor` lists, or wait for them, "
        "and run `rota migrate` again"
    )
