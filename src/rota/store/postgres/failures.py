"""From psycopg's errors to Rota's, each with what to do."""

import re
from typing import NoReturn

import psycopg
from psycopg import errors as pg

from rota.errors import (
    DatabaseRefused,
    PoolerUnannounced,
    RotaError,
    SchemaIncomplete,
    SchemaMissing,
    StoreError,
    StoreUnavailable,
)
from rota.store.url import migrating, shown


class LockTimeout(StoreError):
    """A lock was not free within the `lock_timeout`; housekeeping tries again later."""


class AlreadyThere(StoreError):
    """There is a row of that key by now; who meant to insert it looks again."""


def raise_translated(error: psycopg.Error, url: str) -> NoReturn:
    """Raise the error of Rota's own tree that a driver's error means."""
    raise translate(error, url) from error


def translate(error: psycopg.Error, url: str) -> RotaError:  # noqa: C901, PLR0911, PLR0912 - a table of cases
    """The error of Rota's own tree that a driver's error means."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    match error:
        case pg.UndefinedTable() | pg.InvalidSchemaName() | pg.UndefinedColumn():
            return SchemaMissing(
                f"{shown(url)} has no Rota tables, or not the version that this Rota needs ({said}); "
                f"run `{migrating(url)}`, or upgrade Rota here if a newer one has migrated it"
            )
        case psycopg.Error(sqlstate="RT002"):  # of step.sql
            return SchemaIncomplete(said)
        case pg.LockNotAvailable():
            return LockTimeout(said)
        case pg.UniqueViolation():
            return AlreadyThere(said)
        case pg.ReadOnlySqlTransaction():
            return StoreError(f"{shown(url)} is read-only ({said}); use the primary server's URL")
        case pg.InsufficientPrivilege():
            return DatabaseRefused(
                f"{shown(url)} refuses: {said}; `rota doctor` says which rights a worker needs"
            )
        case (
            pg.InvalidPassword() | pg.InvalidAuthorizationSpecification() | pg.InvalidCatalogName()
        ):
            return DatabaseRefused(f"{shown(url)} refuses: {said}")
        case pg.InvalidSqlStatementName() | pg.DuplicatePreparedStatement():
            return PoolerUnannounced(
                f"{shown(url)} gives each transaction another connection ({said}): a pooler in "
                "transaction mode; add pooler=transaction to the URL, or connect to the server"
            )
        case (
            pg.DeadlockDetected()
            | pg.SerializationFailure()
            | pg.IdleInTransactionSessionTimeout()
            | pg.QueryCanceled()
        ):
            return StoreUnavailable(f"the database asks to try again: {said}")
        case pg.ObjectNotInPrerequisiteState():
            # Such as a publication of a table whose rows cannot be named to a subscriber.
            return StoreUnavailable(
                f"{shown(url)} refuses for now: {said}; `rota doctor` may know why"
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            if error.sqlstate is None and _misspelt(said):
                return DatabaseRefused(f"{shown(url)} cannot be used: {_unquoted(said, url)}")
            return StoreUnavailable(f"{shown(url)} cannot be reached: {said}")
        case psycopg.ProgrammingError() if error.sqlstate is None:
            return DatabaseRefused(f"{shown(url)} cannot be used: {_unquoted(said, url)}")
        case _:
            return StoreError(said)


def _unquoted(said: str, url: str) -> str:
    """What libpq says of a URL, without what it quotes of the password."""

    def quoted(found: re.Match[str]) -> str:
        return '"…"' if found[1] in url and found[1] not in shown(url) else found[0]

    return re.sub(r'"([^"]+)"', quoted, said)


def _misspelt(said: str) -> bool:
    # libpq reports what it cannot connect with as plain text, without a code.
    return any(
        part in said
        for part in (
            "invalid",
            "password authentication failed",
            "does not exist",
            "no password supplied",
        )
    )
