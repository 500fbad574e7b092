"""From SQLite's errors to Rota's, each with the file's name and what to do."""

import sqlite3

from rota.errors import SchemaMissing, SchemaOutdated, StoreError, StoreUnavailable
from rota.store.sqlite.url import url_of
from rota.store.url import migrating

_PRIMARY = 0xFF
"""SQLite keeps the kind of an error in the lowest byte of its code, and details above it."""

_BUSY = (
    "another process has kept {path} locked for too long ({doing}); look for a transaction that "
    "was left open, or a process that was stopped"
)
_READONLY = (
    "{path} is read-only for this process ({doing}); it must be allowed to write the file and its "
    "folder"
)

_CANTOPEN = (
    "the database file {path} cannot be opened: its folder must exist, and this process must be "
    "allowed to write there"
)
_CORRUPT = (
    "{path} is damaged ({doing}: {error}); stop all workers, keep a copy of the file, and try the "
    "command .recover of the sqlite3 shell"
)

_TEXTS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreUnavailable, _BUSY),
    sqlite3.SQLITE_LOCKED: (StoreUnavailable, _BUSY),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        _CANTOPEN,
    ),
    sqlite3.SQLITE_FULL: (
        StoreUnavailable,
        "no space is left for {path}; nothing was stored ({doing})",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreUnavailable,
        "{path} cannot be read or written ({doing}: {error}); check the disk",
    ),
    sqlite3.SQLITE_READONLY: (StoreError, _READONLY),
    sqlite3.SQLITE_PERM: (StoreError, _READONLY),
    sqlite3.SQLITE_AUTH: (StoreError, _READONLY),
    sqlite3.SQLITE_NOTADB: (StoreError, "{path} is not a SQLite database; check the URL"),
    sqlite3.SQLITE_CORRUPT: (
        StoreError,
        _CORRUPT,
    ),
}

_BROKEN = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)


def busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock, so that all there is to do is to try again."""
    return _kind(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def broken(error: sqlite3.Error) -> bool:
    """Whether the connection should not be used again."""
    return _kind(error) in _BROKEN


def translated(error: sqlite3.Error, path: str, doing: str) -> StoreError:
    """What Rota raises instead of a driver's error that happened while `doing` something."""
    if known := _TEXTS.get(_kind(error)):
        raised, text = known
        return raised(text.format(path=path, doing=doing, error=error))
    text = str(error)
    if text.startswith("no such table: rota_"):
        return SchemaMissing(f"{path} has no Rota tables yet; run `{migrating(url_of(path))}`")
    if text.startswith("no such column:") or " has no column named " in text:
        return SchemaOutdated(
            f"the Rota tables in {path} have another version ({text}); run `{migrating(url_of(path))}`"
        )
    return StoreError(f"{path} refused the operation {doing}: {text}")


def _kind(error: sqlite3.Error) -> int:
    """The primary result code of an error; 0 where it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return 0 if code is None else code & _PRIMARY
