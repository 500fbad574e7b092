"""Rota's tables in a project that migrates its database with Alembic.

    import rota.alembic
    from alembic import op

    def upgrade() -> None:
        rota.alembic.upgrade(op, to={"postgresql": 27, "sqlite": 17})

    def downgrade() -> None:
        rota.alembic.downgrade(op, to=0)

The steps are those of `rota migrate`, run on Alembic's connection in Alembic's transaction; with
`--sql` they are written instead. None of them needs to be outside of a transaction. On SQLite,
where Alembic's migrations have no transaction of their own, each step is one.

Alembic itself is not imported here: the `op` of the migration has all that is needed.
"""

import contextlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from rota.database import adapters
from rota.errors import ConfigError, SchemaIncomplete, SchemaTooNew, StoreUnavailable
from rota.store import migrate
from rota.store.opening import open_store
from rota.store.operation import statement
from rota.store.protocol import Store

SEARCH_PATH = statement("rota.store.postgres", "schema/search_path")

LOCK_NOT_AVAILABLE = "55P03"
INCOMPLETE = "RT002"
"""What step.sql raises."""


class Op(Protocol):
    """Alembic's `op`, as a migration imports it."""

    def get_context(self) -> Any:
        """Where the migration runs."""
        ...


_written: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Which version the tables have after what was written so far, by `--sql` run."""


def upgrade(op: Op, *, to: int | Mapping[str, int], after: int = 0) -> None:
    """Bring Rota's tables to a version, in a migration's `upgrade`.

    Tables of this version or a newer one stay as they are. Where there are none, they are made as
    this Rota needs them, in one step, even if that is newer.

    Args:
        op: Alembic's.
        to: The version, as `rota migrate` names it; for projects on both databases one for each:
            `{"postgresql": 27, "sqlite": 17}`.
        after: The version that the tables have before, for `--sql` alone, which cannot look. It
            need not be said where there are none, or where what is written begins with the
            migration that makes them.

    Raises:
        ConfigError: This Rota does not know the version, or the dialect; or the project's own
            tables would be made among Rota's.
        StoreUnavailable: The tables were in use by others; nothing has changed.
        SchemaIncomplete: There are tables, and their version is missing.
        SchemaTooNew: A newer Rota has taken away what this Rota uses.
        SchemaOutdated: The tables are so old that this Rota does not know the way any more.
        StoreError: The database refuses.
    """
    context = op.get_context()
    store = _store(context)
    version = _version(store, context, to)
    if context.as_sql:
        _write(store, context, version, after=_written.get(context, after))
        return
    connection = context.connection
    _check_search_path(store, connection)
    there = _there(store, connection)
    for number, sql in migrate.steps(store, there).items():
        if there and number > version:
            break
        with _whole(store, connection):
            _execute(store, connection, number, sql, after=there)
        there = number


def downgrade(op: Op, *, to: int | Mapping[str, int] = 0) -> None:
    """Go back to a version of Rota's tables, in a migration's `downgrade`.

    Rota's migrations lead forwards only, and code that knows an older version works with newer
    tables: so nothing changes except for version 0, where the tables are removed, and all jobs with
    them.

    Args:
        op: Alembic's.
        to: The version that the tables had before the migration, or one for each dialect.

    Raises:
        ConfigError: This Rota does not know the version, or the dialect.
        SchemaTooNew: Code of that version does not work with the tables any more.
        StoreUnavailable: The tables were in use by others; nothing has changed.
        StoreError: The database refuses.
    """
    context = op.get_context()
    store = _store(context)
    version = _version(store, context, to, least=0)
    if context.as_sql:
        if version == 0:
            for statement in store.removal():
                context.impl.static_output(f"{statement};")
            _written[context] = 0
        return
    connection = context.connection
    if version == 0:
        with _whole(store, connection):
            for statement in store.removal():
                _send(connection, statement)
    elif _there(store, connection) > version:
        _check_code(adapters.sqlalchemy(connection).run(store.oldest_code()), version)


def include_name(name: str | None, type_: str, parent_names: Mapping[str, str | None]) -> bool:
    """Whether a name does not belong to Rota: for `include_name` of `context.configure`, in env.py.

    So `alembic revision --autogenerate` and `alembic check` leave Rota's tables alone: the schema
    `rota` on PostgreSQL, which they see with `include_schemas=True` only, and the tables on SQLite.
    """
    if type_ == "schema":
        return name != "rota"
    if parent_names.get("schema_name") == "rota":
        return False
    return type_ != "table" or name not in _tables()


@cache
def _tables() -> frozenset[str]:
    return frozenset(migrate.read_names("rota.store.sqlite"))


def _store(context: Any) -> Store:
    """The store of the dialect; it opens no connection."""
    match context.dialect.name:
        case "postgresql":
            return open_store("postgresql://")
        case "sqlite":
            return open_store("sqlite:///rota.db")
        case name:
            message = f"Rota does not support {name}; it keeps its jobs in postgresql or sqlite"
            raise ConfigError(message)


def _version(store: Store, context: Any, to: int | Mapping[str, int], least: int = 1) -> int:
    """The version for this dialect.

    Raises:
        ConfigError: There is none, or this Rota does not know it.
    """
    name = context.dialect.name
    version = to.get(name) if isinstance(to, Mapping) else to
    newest = max(store.migrations())
    if version is None:
        message = f"to={dict(to)!r} has no version for {name}; add {name!r}: {newest}"  # type: ignore[arg-type]  # it is a mapping
        raise ConfigError(message)
    if isinstance(version, bool) or not isinstance(version, int) or not least <= version <= newest:
        message = (
            f"to={version!r}: must be a whole number up to {newest}, the newest version of the tables on {name} that this Rota knows; write that, "
            "or install the Rota that this migration was written for"
        )
        raise ConfigError(message)
    return version


def _check_search_path(store: Store, connection: Any) -> None:
    """Refuse to make the schema `rota` for a role that would look there for its own tables from then on.

    Alembic would not find its own version any more, and autogenerate take Rota's tables for the
    project's.

    Raises:
        ConfigError: It is such a role.
    """
    if store.name != "postgres":
        return
    [[path]] = connection.exec_driver_sql(SEARCH_PATH.text)
    if path[0] == "rota":
        message = (
            "the search_path of this role begins with the schema rota, perhaps because the role has that name; "
            "the project's own tables would be created among Rota's. Put another schema first, as in "
            "ALTER ROLE … SET search_path = public"
        )
        raise ConfigError(message)


def _there(store: Store, connection: Any) -> int:
    """The version of the tables; 0: there are none."""
    # The store finds that by a statement that fails, which would end a transaction on PostgreSQL.
    if store.name == "postgres" and not connection.dialect.has_table(
        connection, "schema_version", schema="rota"
    ):
        adapters.sqlalchemy(connection).run(store.check_server())
        return 0
    version = adapters.sqlalchemy(connection).run(store.schema_version())
    if version > (newest := max(store.migrations())):
        _check_code(adapters.sqlalchemy(connection).run(store.oldest_code()), newest)
    return version


def _check_code(oldest: int, known: int) -> None:
    """Refuse tables which code that knows so old a version cannot work with.

    Raises:
        SchemaTooNew: It cannot.
    """
    if oldest > known:
        message = (
            f"Rota's tables cannot go back to {known}: they need a Rota that knows version {oldest} or later; "
            "leave them as they are"
        )
        raise SchemaTooNew(message)


def _write(store: Store, context: Any, version: int, *, after: int) -> None:
    """Write the steps, for `--sql`."""
    if store.name == "sqlite" and context.impl.transactional_ddl:
        message = (
            "on SQLite each migration of Rota's tables is a transaction of its own, and transactional_ddl "
            "puts another one around it; leave transactional_ddl out when you generate SQL"
        )
        raise ConfigError(message)
    there = after
    for number, sql in migrate.steps(store, there).items():
        if there and number > version:
            break
        context.impl.static_output(store.script(number, sql, after=there))
        there = number
    _written[context] = there


def _execute(store: Store, connection: Any, version: int, sql: str, *, after: int) -> None:
    """Apply one step."""
    if store.name == "postgres":
        _send(connection, store.script(version, sql, after=after))
    else:
        adapters.sqlalchemy(connection).run(store.migrate(version, sql, after=after))


def _send(connection: Any, statement: str) -> None:
    """Send a statement as it stands: a `%` or a `:` in it means nothing to the driver.

    Raises:
        StoreUnavailable: A lock was not free.
        StoreError: The database refuses.
    """
    try:
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    except Exception as error:
        original = getattr(error, "orig", error)
        code = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
        if code == LOCK_NOT_AVAILABLE:
            message = (
                "other sessions were using Rota's tables, and nothing was changed; end the long transactions "
                "that `rota doctor` lists, or wait for them, and run this migration again"
            )
            raise StoreUnavailable(message) from error
        if code == INCOMPLETE:
            raise SchemaIncomplete(str(original).splitlines()[0]) from error
        raise adapters.translated(error) from error


@contextlib.contextmanager
def _whole(store: Store, connection: Any) -> Iterator[None]:
    """All or nothing, whichever way SQLite's driver is set to begin transactions."""
    if store.name == "postgres":
        yield  # each is one statement
        return
    begin, end, undo = "BEGIN IMMEDIATE", ["COMMIT"], ["ROLLBACK"]
    if connection.connection.driver_connection.in_transaction:
        begin, end = "SAVEPOINT rota_step", ["RELEASE rota_step"]
        undo = ["ROLLBACK TO rota_step", *end]
    connection.exec_driver_sql(begin)
    try:
        yield
    except BaseException:
        for statement in undo:
            connection.exec_driver_sql(statement)
        raise
    for statement in end:
        connection.exec_driver_sql(statement)
