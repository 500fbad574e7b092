"""Workers in threads of the test, and what the database says about them."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, LiteralString, Self

from rota_lab.databases import Database
from rota_lab.queue import Queue
from rota_lab.shift import Shift
from rota_lab.work import nothing
from tests.fixtures.workers import LONG

if TYPE_CHECKING:
    from rota_lab.databases import Connection

WAITING: Mapping[Database, LiteralString] = {
    Database.POSTGRES: "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event_type = 'Lock'",
    # Of the whole server; innodb_trx is not renewed when it is asked often.
    Database.MARIADB: "select variable_value from information_schema.global_status"
    " where variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
}
SESSIONS: Mapping[Database, LiteralString] = {
    Database.POSTGRES: "select count(*) from pg_stat_activity"
    " where datname = current_database() and backend_type = 'client backend'",
    Database.MARIADB: "select count(*) from information_schema.processlist where db = database()",
}


WAITS: LiteralString = (
    "select variable_value from information_schema.global_status"
    " where variable_name = 'INNODB_ROW_LOCK_WAITS'"
)


class Bystander:
    """Looks at the queue's database from outside."""

    def __init__(self, queue: Queue) -> None:
        self._kind = queue.location.database
        self._connection: Connection = queue.location.connect()
        # In a transaction that holds something PostgreSQL would always give its first answer.
        self._looking: Connection = queue.location.connect()

    def waiting(self) -> int:
        """How many sessions wait for a lock; SQLite does not tell."""
        return self._count(WAITING)

    def waits(self) -> int:
        """How often a session has begun to wait for a lock, since MariaDB was started."""
        return int(self._looking.rows(WAITS)[0][0])

    def sessions(self) -> int:
        """How many sessions there are; SQLite has none."""
        return self._count(SESSIONS)

    def change(self, sql: LiteralString, *parameters: object) -> int:
        """Change something; how many rows."""
        return self._connection.execute(sql, *parameters)

    def hold(self, sql: LiteralString, *parameters: object) -> None:
        """Lock rows until `release`."""
        self._connection.begin()
        self._connection.rows(sql, *parameters)

    def release(self) -> None:
        """Let go of them."""
        self._connection.rollback()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._looking.close()

    def _count(self, queries: Mapping[Database, LiteralString]) -> int:
        if self._kind not in queries:
            return 0
        return int(self._looking.rows(queries[self._kind])[0][0])


class Hand:
    """A worker in a thread; `holds` says whether it keeps the first job until it is released."""

    def __init__(self, queue: Queue, *, holds: bool = False) -> None:
        self.worked: list[str] = []
        self.at_work = threading.Event()
        self.released = threading.Event()
        if not holds:
            self.released.set()
        self._strategy = type(queue.strategy)(queue.location, queue.strategy.settings)
        self.shift = Shift(self._work, drain=True)
        self._thread = threading.Thread(target=self._run)
        self._errors: list[BaseException] = []

    @property
    def ended(self) -> bool:
        """Whether it has found nothing any more."""
        return not self._thread.is_alive()

    def start(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def join(self) -> None:
        """Wait for its end; what went wrong in it is raised here."""
        self.released.set()
        self._thread.join(LONG)
        if self._thread.is_alive():
            self.shift.end()
            raise AssertionError("the worker has not ended")
        for error in self._errors:
            raise error

    def _work(self, text: str) -> None:
        self.worked.append(text)
        self.at_work.set()
        assert self.released.wait(LONG)

    def _run(self) -> None:
        try:
            with closing(self._strategy):
                self._strategy.run(self.shift)
        except BaseException as error:  # noqa: BLE001 - raised again in the test
            self._errors.append(error)


@contextmanager
def attended(queue: Queue) -> Iterator[None]:
    """The attending process of a design that has one, as a thread."""
    if not queue.strategy.attended:
        yield
        return
    attending = type(queue.strategy)(queue.location, queue.strategy.settings)
    shift = Shift(nothing)
    # Now, so that a test that counts sessions counts this one.
    attending.open()
    thread = threading.Thread(target=attending.attend, args=(shift,))
    thread.start()
    try:
        yield
    finally:
        shift.end()
        thread.join(LONG)
        attending.close()
