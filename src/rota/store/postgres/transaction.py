"""A transaction of Rota's own, for callers without one."""

from collections.abc import Callable
from typing import LiteralString

import psycopg

from rota.store.operation import Begin
from rota.store.postgres.connection import BEGIN, LOCAL_PLANNER, PostgresConnection
from rota.store.postgres.failures import raise_translated
from rota.store.postgres.job_transaction import TAG

BEGIN_TAGGED: LiteralString = f"{BEGIN[Begin.DURABLE]}; {TAG.text}"


class PostgresTransaction:
    """An open transaction of Rota's own; see `rota.store.connections.Transaction`."""

    def __init__(
        self,
        own: PostgresConnection,
        give_back: Callable[[PostgresConnection], None],
        *,
        tagged: bool,
    ) -> None:
        self._own = own
        self._give_back = give_back
        self._open = True
        try:
            self.connection = own.fresh()
            self._run(BEGIN_TAGGED if tagged else BEGIN[Begin.DURABLE])
        except BaseException:
            own.close()
            give_back(own)
            raise

    def tune(self) -> None:
        """Use Rota's own settings until the end, which is near: one settlement, and the commit.

        They end with the transaction. With one of them the server ends the transaction of a worker
        that freezes right there, with the job's lease locked.
        """
        self._run(LOCAL_PLANNER)

    def commit(self) -> None:
        """Make everything done in it permanent, and end it."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Undo everything done in it; a connection that is gone has done so already."""
        self._end("ROLLBACK")

    def _end(self, sql: LiteralString) -> None:
        if not self._open:
            return
        self._open = False
        try:
            if sql == "COMMIT" or not self.connection.closed:
                self._run(sql)
        except BaseException:
            self._own.close()
            raise
        finally:
            self._give_back(self._own)

    def _run(self, sql: LiteralString) -> None:
        try:
            self.connection.execute(sql, prepare=False)
        except psycopg.Error as error:
            raise_translated(error, self._own.url)
