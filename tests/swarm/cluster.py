"""The servers of a swarm: one that is worked on, a standby, and those that take their place.

All processes come to the server by proxies, which are led to its successor. The standby is a
synchronous one: what was acknowledged is there, too, unless a fault lets it fall behind, which the
ledger is told.
"""

import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
import psycopg
from psycopg import sql

from rota.measure.servers import PostgresServer, find_binaries
from rota.measure.servers.owner import temporary_folder
from tests.fixtures.memory import MEMORY
from tests.fixtures.proxy import Proxy
from tests.fixtures.standby import cut_off, promote, standby_of
from tests.fixtures.workers import until
from tests.swarm.disk import Disk
from tests.swarm.ledger import Ledger

NAME = "swarm"
"""Of the database."""

SETTINGS = {
    "max_prepared_transactions": "100",
    "max_wal_size": "256MB",
    # The log of changes is written when a commit waits for that, and then alone: a crash takes the
    # rest along.
    "wal_writer_delay": "10s",
    "wal_retrieve_retry_interval": "200ms",
    "autovacuum_naptime": "10s",
}

LONG = 60.0
"""Seconds after which a server has not done what it was told."""


class Cluster:
    """The server that is worked on, its standby, if there is one, and the ways to it.

    Args:
        migrate: Makes Rota's tables.

    Attributes:
        lock: For whatever changes the servers.
    """

    def __init__(self, ledger: Ledger, migrate: Callable[[str], None]) -> None:
        self.lock = threading.RLock()
        self._ledger = ledger
        self._open: dict[PostgresServer, ExitStack] = {}
        self._proxies: list[Proxy] = []
        self._disks: dict[PostgresServer, Disk] = {}
        self._standby: PostgresServer | None = None
        self._server = self._new()
        migrate(self.url)
        with self.admin() as admin:
            admin.execute("CREATE TABLE effect (number bigint)")

    @property
    def url(self) -> str:
        """Of the database, without any proxy."""
        return _at(self._server)

    @property
    def disk(self) -> Disk | None:
        """The small one that the server's data are on, if they are."""
        return self._disks.get(self._server)

    def proxy(self) -> Proxy:
        """A new way to the database."""
        proxy = Proxy(self.url, listen=False)
        self._proxies.append(proxy)
        return proxy.__enter__()

    def close(self) -> None:
        """End everything."""
        with self.lock:
            for proxy in self._proxies:
                proxy.close()
            for server in [*self._open]:
                self._stop(server)

    # What may become of the servers ----------------------------------------------------------

    def restart(self, *, crash: bool) -> None:
        """Stop the server and start it again."""
        with self.lock:
            self._server.restart(mode="immediate" if crash else "fast")

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """None of the server's processes does anything."""
        with self.lock:
            postmaster = psutil.Process(self._server.pid)
            everything = [postmaster, *postmaster.children()]
            try:
                for process in everything:
                    with suppress(psutil.NoSuchProcess):
                        process.suspend()
                yield
            finally:
                for process in everything:
                    with suppress(psutil.NoSuchProcess):
                        process.resume()

    def attach(self) -> bool:
        """Make a standby, and let commits wait for it; whether there was none before."""
        with self.lock:
            if self._standby is not None:
                return False
            stack = ExitStack()
            standby = stack.enter_context(standby_of(self._server, SETTINGS))
            self._open[standby] = stack
            try:
                self._let_commits_wait()
            except BaseException:
                # One that commits do not wait for would lack some of them after a fail-over.
                with suppress(psycopg.Error):
                    self._synchronous("")
                self._stop(standby)
                raise
            self._standby = standby
            self._ledger.say("attached")
            return True

    def fail_over(self, *, behind: float | None) -> bool:
        """The server crashes, its standby takes its place; whether there was one.

        `behind`: the standby has missed the last seconds.
        """
        with self.lock:
            old, new = self._server, self._standby
            if new is None:
                return False
            began = time.monotonic()
            if behind is not None:
                self._synchronous("")
                cut_off(new)
                time.sleep(behind)
            os.kill(old.pid, signal.SIGQUIT)
            promote(new)
            self._standby = None
            self._lead_to(new)
            if behind is not None:
                self._ledger.say("tail", time.monotonic() - began)
            self._stop(old)
            return True

    def move(self, *, quiet: bool, clone: bool) -> bool:
        """Go on in another cluster, into which a dump was restored; whether that was possible.

        `quiet`: nothing works meanwhile, so nothing may be lost. `clone`: the other cluster is a
        copy of this one's files, of a while ago.
        """
        with self.lock:
            if clone and self._standby is None:
                return False
            began = time.monotonic()
            old, standby = self._server, self._standby
            self._standby = None
            if standby is not None:
                self._synchronous("")
            new = self._clone(standby) if clone and standby is not None else self._new()
            try:
                if quiet:
                    self._refuse()
                dumped = self._copy(new)
            finally:
                self._lead_to(self._server)
            if not quiet:
                self._ledger.say("tail", time.monotonic() - dumped)
            self._ledger.say("moved", time.monotonic() - began)
            self._stop(old)
            if standby is not None and not clone:
                self._stop(standby)
            return True

    @contextmanager
    def admin(self) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
        """A connection to the database in autocommit, without any proxy."""
        with psycopg.connect(self.url, autocommit=True, application_name="swarm") as admin:
            yield admin

    # Servers ---------------------------------------------------------------------------------

    def _new(self) -> PostgresServer:
        stack = ExitStack()
        disk = Disk.mounted(stack)
        above = disk.folder if disk else MEMORY or temporary_folder(public=True)
        folder = above / f"rota-swarm-{secrets.token_hex(8)}"
        server = stack.enter_context(PostgresServer.start(folder=folder, settings=SETTINGS))
        self._open[server] = stack
        if disk is not None:
            self._disks[server] = disk
        server.create_database(NAME)
        return server

    def _copy(self, new: PostgresServer) -> float:
        """Be this other cluster, with a dump of the database; when it was dumped."""
        with psycopg.connect(new.url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {NAME}")
        dumped = time.monotonic()
        dump = run_program("pg_dump", self.url)
        self._refuse()
        run_program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", _at(new), told=dump)
        self._server = new
        return dumped

    def _clone(self, standby: PostgresServer) -> PostgresServer:
        cut_off(standby)
        with self.admin() as admin:
            for _ in range(100):  # the server's own transactions go on
                admin.execute("SELECT pg_current_xact_id()")
        promote(standby)
        with psycopg.connect(_at(standby), autocommit=True) as admin:
            roll_back_prepared(admin)  # the database could not be dropped
        return standby

    def _stop(self, server: PostgresServer) -> None:
        self._disks.pop(server, None)
        with suppress(OSError):
            os.kill(server.pid, signal.SIGQUIT)  # nobody needs its data
        self._open.pop(server).close()

    def _synchronous(self, names: str) -> None:
        with self.admin() as admin:
            admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            admin.execute("SELECT pg_reload_conf()")
            shown = "SELECT WHERE current_setting('synchronous_standby_names') = %s"
            until(lambda: admin.execute(shown, [names]).fetchall(), "the server's setting", LONG)

    def _let_commits_wait(self) -> None:
        """Have each commit wait for the standby."""
        self._synchronous("*")
        with self.admin() as admin:
            caught_up = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
            until(lambda: admin.execute(caught_up).fetchall(), "the standby", LONG)
            # Commits wait since the checkpointer has read the setting, which it does before a
            # checkpoint.
            admin.execute("CHECKPOINT")
            # Its commit waits until the standby has all that came before.
            admin.execute("SELECT pg_current_xact_id()")

    def _lead_to(self, server: PostgresServer) -> None:
        self._server = server
        self._synchronous("")
        for proxy in self._proxies:
            proxy.lead(self.url)
            proxy.refuses = False
            proxy.cut()

    def _refuse(self) -> None:
        """Let none of the processes reach the server any more."""
        for proxy in self._proxies:
            proxy.refuses = True
            proxy.cut()
        with self.admin() as admin:
            others = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            until(lambda: not admin.execute(others).fetchall(), "the last ones to go", LONG)


def _at(server: PostgresServer) -> str:
    return server.url.replace("/postgres?", f"/{NAME}?")


def roll_back_prepared(admin: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Roll back the transactions that were prepared and left."""
    for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        admin.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))


def run_program(program: str, *words: str, told: str = "") -> str:
    """Run one of PostgreSQL's programs; what it says."""
    beside = find_binaries() / program
    found = str(beside) if beside.exists() else shutil.which(program) or program
    done = subprocess.run([found, *words], input=told, capture_output=True, text=True, check=True)
    return done.stdout
