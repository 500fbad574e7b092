"""A transaction of Rota's own, for callers without one."""

from collections.abc import Callable

from rota.store.operation import Then
from rota.store.sqlite.connection import FULL, SqliteConnection
from rota.store.sqlite.job_transaction import TAG


class SqliteTransaction:
    """An open transaction; see `rota.store.connections.Transaction`.

    It keeps other writers of the file waiting until it ends. `give_back` receives the connection
    then.
    """

    def __init__(
        self,
        own: SqliteConnection,
        give_back: Callable[[SqliteConnection], None],
        *,
        tagged: bool,
    ) -> None:
        self._own = own
        self._give_back = give_back
        self._open = True
        try:
            self.connection = own.begin(FULL)
            if tagged:
                self.connection.execute(TAG.text)
        except BaseException:
            give_back(own)
            raise

    def tune(self) -> None:
        """Nothing has to be set here."""

    def commit(self) -> None:
        """Make everything done in it permanent, and end it."""
        if self._open:
            self._open = False
            try:
                self._own.commit()
                self._own.wake(Then.WORKERS)
            finally:
                self._return()

    def rollback(self) -> None:
        """Undo everything done in it, and end it."""
        if self._open:
            self._open = False
            try:
                self._own.rollback()
            finally:
                self._return()

    def _return(self) -> None:
        try:
            database = self._own.database()
            # What the caller may have set for its own statements.
            database.row_factory, database.text_factory = None, str
        finally:
            self._give_back(self._own)
