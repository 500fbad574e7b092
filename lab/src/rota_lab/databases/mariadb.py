"""MariaDB, through PyMySQL."""

import contextlib
import importlib.metadata
import secrets
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, LiteralString

import pymysql
from pymysql.constants import CLIENT, CR, ER

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers.addresses import of_database
from rota_lab.databases import Connection, Deadlock, Kind, Look, row_type

LOST = {
    CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST,
    ER.SERVER_SHUTDOWN, 0,
}  # fmt: skip
"""PyMySQL's codes when the server is gone; 0 when it was gone before."""

LOOK: LiteralString = """
    select (select cast(count as integer) from information_schema.innodb_metrics
            where name = 'trx_rseg_history_len') as dead,
           (select cast(max(timestampdiff(microsecond, trx_started, now(6))) / 1e6 as double)
            from information_schema.innodb_trx) as oldest
"""
SETTINGS: LiteralString = """
    select lower(variable_name) as name, variable_value as setting
    from information_schema.global_variables
    where variable_name in ('INNODB_FLUSH_LOG_AT_TRX_COMMIT', 'INNODB_BUFFER_POOL_SIZE',
        'INNODB_DEADLOCK_DETECT', 'SYNC_BINLOG', 'LOG_BIN', 'TX_ISOLATION', 'INNODB_DOUBLEWRITE')
    order by 1
"""


class MariaDB(Connection):
    """A connection in autocommit mode; counts the rows found, not the rows changed."""

    def __init__(self, url: str) -> None:
        with _translated():
            self._connection = _connect(url)

    def execute(self, sql: LiteralString, *parameters: object) -> int:
        with _translated(), self._connection.cursor() as cursor:
            return cursor.execute(sql, parameters or None)

    def execute_many(self, sql: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        with self.transaction(), _translated(), self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    def rows(self, sql: LiteralString, *parameters: object) -> list[Any]:
        with _translated(), self._connection.cursor() as cursor:
            cursor.execute(sql, parameters or None)
            row = row_type(*(column[0] for column in cursor.description or ()))
            return [row(*values) for values in cursor.fetchall()]

    def rollback(self) -> None:
        with contextlib.suppress(pymysql.Error):
            self._connection.rollback()

    def close(self) -> None:
        with contextlib.suppress(pymysql.Error):
            self._connection.close()


class MariaDBKind(Kind):
    """Databases on a MariaDB server."""

    def connect(self, url: str) -> Connection:
        return MariaDB(url)

    @contextlib.contextmanager
    def fresh(self, server: str) -> Iterator[str]:
        name = f"rota_lab_{secrets.token_hex(4)}"
        with _admin(server) as admin:
            admin.execute(f"create database {name} character set utf8mb4")
        try:
            yield of_database(server, name)
        finally:
            # A new connection: the first may be dead after hours.
            with contextlib.suppress(StoreUnavailable), _admin(server) as admin:
                admin.execute(f"drop database if exists {name}")

    @contextlib.contextmanager
    def long_transaction(self, url: str) -> Iterator[None]:
        with contextlib.closing(self.connect(url)) as connection:
            connection.execute("start transaction with consistent snapshot")
            yield

    def look(self, connection: Connection) -> Look:
        return Look(*connection.rows(LOOK)[0])

    def facts(self, url: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        with contextlib.closing(self.connect(url)) as connection:
            version = connection.rows("select version() as version")[0].version
            settings = connection.rows(SETTINGS)
        versions = {"mariadb": version, "pymysql": importlib.metadata.version("pymysql")}
        return versions, {row.name: row.setting for row in settings}


def _connect(url: str) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    parts = urllib.parse.urlsplit(url)
    options = dict(urllib.parse.parse_qsl(parts.query))
    if (path := options.get("unix_socket")) is not None and not Path(path).is_socket():
        raise StoreUnavailable(f"MariaDB cannot be reached: there is no socket {path}")
    return pymysql.connect(
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        user=urllib.parse.unquote(parts.username or "root"),
        password=urllib.parse.unquote(parts.password or ""),
        database=parts.path.lstrip("/") or None,
        unix_socket=options.get("unix_socket"),
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=10,
        client_flag=CLIENT.FOUND_ROWS,
    )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (pymysql.OperationalError, pymysql.InterfaceError) as error:
        code = error.args[0] if error.args else 0
        if code == ER.LOCK_DEADLOCK:
            raise Deadlock(str(error.args[-1])) from error
        if code in LOST:
            raise StoreUnavailable(f"MariaDB: {error.args[-1] or 'the server is gone'}") from error
        raise


@contextlib.contextmanager
def _admin(server: str) -> "Iterator[pymysql.cursors.Cursor]":
    try:
        with (
            contextlib.closing(_connect(server)) as connection,
            connection.cursor() as cursor,
        ):
            yield cursor
    except pymysql.Error as error:
        said = error.args[-1] if error.args else "the server is gone"
        if error.args and error.args[0] in LOST:
            raise StoreUnavailable(f"MariaDB cannot be reached: {said}") from error
        message = (
            f"the lab makes databases of its own, which MariaDB refuses: {said}; "
            "use an account that may, or no --database"
        )
        raise ConfigError(message) from error


KIND = MariaDBKind()
