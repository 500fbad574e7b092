"""From SQLite's errors to Rota's, each with the file's name and what to do."""

import sqlite3

from rota.errors import SchemaMissing, SchemaOutdated, StoreError, StoreUnavailable

_PRIMARY = 0xFF
"""SQLite keeps the kind of an error in the lowest byte of its code, and details above it."""


def kind(error: sqlite3.Error) -> int:
    """The primary result code of an error; 0 where it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return 0 if code is None else code & _PRIMARY


def busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds a lock, so that trying again is all there is to do."""
    return kind(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def broken(error: sqlite3.Error) -> bool:
    """Whether the connection should not be used again."""
    return kind(error) in {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }


def translated(error: sqlite3.Error, path: str, doing: str) -> StoreError:
    """What Rota raises instead of a driver's error, while `doing` something on a file."""
    match kind(error):
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(
                f"the database file {path} cannot be opened: its folder must exist, and this "
                "process must be allowed to write there"
            )
        case sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"no space is left for {path}; nothing was stored ({doing})")
        case sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"{path} cannot be read or written ({doing}): {error}")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(
                f"another process has kept {path} locked for too long ({doing}); "
                "look for a transaction that was left open, or a process that was stopped"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreError(
                f"{path} is read-only for this process ({doing}); "
                "it must be allowed to write the file and its folder"
            )
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"{path} is not a SQLite database; check the URL")
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(
                f"{path} is damaged ({doing}: {error}); stop all workers, keep a copy, and run "
                "SQLite's .recover on it"
            )
        case _:
            return _by_message(str(error), path, doing)


def _by_message(text: str, path: str, doing: str) -> StoreError:
    if text.startswith("no such table: rota_"):
        return SchemaMissing(f"{path} has no Rota tables yet; run `rota migrate`")
    if text.startswith("no such column:") or " has no column named " in text:
        return SchemaOutdated(
            f"the Rota tables in {path} are of another version ({text}); run `rota migrate`"
        )
    return StoreError(f"{path} refused {doing}: {text}")
