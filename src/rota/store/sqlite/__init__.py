"""The embedded store: jobs as rows of a SQLite file, for one machine."""

from rota.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
