"""Processor time of a PostgreSQL server's processes, by what their connections are for.

Read from the operating system, which counts all that a process does: pg_stat_statements leaves out
the start of the executor, the greatest part of a short statement.

Known weakness: what a process does between the last look and its end is not counted.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    import psutil
    import psycopg

CLIENTS: LiteralString = """
    SELECT pid, application_name FROM pg_stat_activity WHERE backend_type = 'client backend'
"""

BACKGROUND = "background"
"""Processes without a client: the writers, the checkpointer, autovacuum."""

PRODUCERS = "producers"
"""Rota's connections without a purpose in their name."""


class Processor:
    """The processes of the server that a connection leads to; `unseen` are an observer's own."""

    def __init__(
        self, connection: "psycopg.Connection[tuple[Any, ...]]", unseen: frozenset[int]
    ) -> None:
        self._connection = connection
        self._unseen = unseen
        self._server = _server(connection)
        self._kinds: dict[int, str] = {}
        self._used: dict[psutil.Process, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def seconds(self) -> Mapping[str, float] | None:
        """Seconds of processor time of each kind since the first look.

        `None` where the server's processes cannot be seen: on another machine, or without psutil.
        """
        if self._server is None:
            return None
        import psutil

        first = not self._used
        self._kinds |= dict(self._connection.execute(CLIENTS).fetchall())
        for process in self._server.children():
            if process.pid in self._unseen:
                continue
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            used = times.user + times.system
            # A process id may be given again: a process equals itself alone.
            before = self._used.get(process, used if first else 0.0)
            self._seconds[kind(self._kinds.get(process.pid))] += used - before
            self._used[process] = used
        return dict(self._seconds)


def kind(application: str | None) -> str:
    """What a process of the server works for, by the name of its client; `None`: it has none."""
    if application is None:
        return BACKGROUND
    name, _, purpose = application.partition(" ")
    if name != "rota":
        return "others"
    return purpose or PRODUCERS


def _server(connection: "psycopg.Connection[tuple[Any, ...]]") -> "psutil.Process | None":
    try:
        import psutil
    except ImportError:
        return None
    try:
        backend = psutil.Process(connection.info.backend_pid)
        # A server elsewhere has process ids, too, which mean other processes here.
        if not backend.name().startswith("postgres"):
            return None
        return backend.parent()
    except psutil.Error:
        return None
