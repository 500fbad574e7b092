"""Versions of a database's tables, and how one becomes the next: migrations' part of the seam."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rota.store.operation import Operation


class Versions(Protocol):
    """What a store knows of its tables."""

    def check_server(self) -> Operation[None]:
        """Refuse a database that looks like one of the store's kind but on which it could not work.

        Raises:
            ConfigError: It is one of those that are known.
        """
        ...

    def schema_version(self) -> Operation[int]:
        """The version of Rota's tables in the database; 0 where there are none.

        Raises:
            SchemaIncomplete: There are tables, and their version is missing.
            ConfigError: The tables are spread over several servers.
        """
        ...

    def oldest_code(self) -> Operation[int]:
        """The oldest version whose code works with the tables, which are newer than this Rota."""
        ...

    def migrations(self, version: int = 0) -> Mapping[int, str]:
        """The SQL that leads from a version to the newest, by the version that each step leads to.

        From 0, where there are no tables, it is one step.
        """
        ...

    def migrate(self, version: int, sql: str, *, after: int) -> Operation[bool]:
        """Apply one migration to tables of the version `after` and record its own, as a whole.

        Nothing happens where the tables have its version already. False where a lock was not free
        soon: nothing has changed.
        """
        ...

    def script(self, version: int, sql: str, *, after: int) -> str:
        """What `migrate` does, as a text for the database's own client.

        Applied where it does not fit, it changes nothing, and may fail.
        """
        ...

    def removal(self) -> Sequence[str]:
        """The statements that remove Rota's tables with all jobs, or do nothing where there are none."""
        ...
