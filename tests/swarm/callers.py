"""Transactions of several kinds, alike: Rota's own, psycopg's, SQLAlchemy's.

An error of any driver, and of Rota, is one of `ERRORS`.
"""

from typing import Any, Protocol

import psycopg
import sqlalchemy
from sqlalchemy.orm import Session

from rota import Rota, RotaError

ERRORS = (RotaError, psycopg.Error, sqlalchemy.exc.SQLAlchemyError, OSError)


class Caller(Protocol):
    """One connection, and a transaction on it at a time."""

    def begin(self) -> Any:
        """Begin one; what `conn=` takes."""

    def execute(self, sql: str) -> Any:
        """Run a statement in it."""

    def commit(self) -> None:
        """Commit it."""

    def rollback(self) -> None:
        """Roll it back."""

    def close(self) -> None:
        """Forget the connection."""


class Own:
    """`rota.transaction()`."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    def begin(self) -> Any:
        """Begin one."""
        self._block = self._rota.transaction()
        return self._block.__enter__()

    def execute(self, sql: str) -> Any:
        """Run a statement in it."""
        return self._block.execute(sql)

    def commit(self) -> None:
        """Leave the block well."""
        self._block.__exit__(None, None, None)

    def rollback(self) -> None:
        """Leave it with an exception."""
        self._block.__exit__(KeyError, KeyError(), None)

    def close(self) -> None:
        """Leave it, if it is still there."""
        self.rollback()


class Psycopg:
    """psycopg's connection, without autocommit."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._conn: psycopg.Connection[Any] | None = None

    def begin(self) -> Any:
        """The first statement begins one."""
        if self._conn is None:
            self._conn = psycopg.connect(self._url)
        return self._conn

    def execute(self, sql: str) -> Any:
        """Run a statement in it."""
        return self.begin().execute(sql)

    def commit(self) -> None:
        """Commit it."""
        self.begin().commit()

    def rollback(self) -> None:
        """Roll it back."""
        self.begin().rollback()

    def outside(self, sql: str) -> None:
        """Run a statement outside of any transaction."""
        conn = self.begin()
        conn.rollback()
        conn.autocommit = True
        conn.execute(sql)
        conn.autocommit = False

    def close(self) -> None:
        """The next one has a new connection."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()


class Alchemy:
    """A session of SQLAlchemy's ORM."""

    def __init__(self, url: str) -> None:
        self._engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    def begin(self) -> Any:
        """Open a session, whose first statement begins one."""
        self._session = Session(self._engine)
        return self._session

    def execute(self, sql: str) -> Any:
        """Run a statement in it."""
        return self._session.execute(sqlalchemy.text(sql))

    def commit(self) -> None:
        """Commit it."""
        self._session.commit()
        self._session.close()

    def rollback(self) -> None:
        """Roll it back."""
        self._session.rollback()
        self._session.close()

    def close(self) -> None:
        """The next one has a new connection."""
        self._session.close()
        self._engine.dispose()
