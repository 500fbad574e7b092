"""The process that runs a private server, so that none outlives its owner.

Run as a program of its own, with the standard library only: `python -I watchdog.py`. It reads
lines from its standard input and answers each with one line, both JSON:

    the first line  the plan, see `Plan` and `PostgresPlan`; not answered
    "prepare"       make the folders and, if needed, the database cluster
    "start"         start the server and wait until it accepts connections
    "fast"          stop the server in order (a mode of PostgreSQL's)
    "immediate"     stop the server as in a crash (likewise)
    end of input    stop the server at once, remove its folders, and end

Model. The owner holds the only write end of the pipe, and the kernel closes it however the owner
ends, also by SIGKILL. A child that the owner forked may hold a copy of the write end, so the
owner's process is watched as well where the kernel can (Linux 5.3). The server is this process's
child: its death is seen at once, never guessed from a pid that another process may have by now.
This process has a session of its own, so Ctrl-C in a terminal does not reach it.

Known weaknesses. A watchdog killed by SIGKILL leaves the server running. Backends that outlive a
crashed postmaster are found through /proc; without it (macOS) they end by themselves, but a restart
in that moment fails.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = {"start": 60.0, "fast": 30.0, "immediate": 10.0}
"""Seconds until a start counts as failed, and until a stop becomes harsher."""

SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


PR_SET_CHILD_SUBREAPER = 36
"""From Linux's <sys/prctl.h>."""


class ServerError(Exception):
    """The server did not do what it was told; the message goes to the owner."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A server of one process, such as Redis, that the owner wants to run.

    Attributes:
        name: For messages and for the folder.
        owner: Process id of the owner, with which the server ends.
        temporary: Folder to make the private folder in.
        account: User id and group id of the server; None for the current user.
        prepare: Commands to run first. {data}, {folder} and {socket} in their words, and in those
            of `serve`, stand for paths in the private folder.
        serve: The server itself, in the foreground.
    """

    name: str
    owner: int
    temporary: str
    account: tuple[int, int] | None
    prepare: Sequence[Sequence[str]] = ()
    serve: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class PostgresPlan(Plan):
    """A PostgreSQL server that the owner wants to run.

    Attributes:
        binaries: Folder of initdb and postgres.
        folder: Where to keep the data; None keeps it in the private folder.
        settings: PostgreSQL's own settings, by name.
    """

    binaries: str
    folder: str | None
    settings: Mapping[str, str]


class Server:
    """A private folder, which holds the data, and the server's process while it runs."""

    def __init__(self, plan: Plan) -> None:
        self.account = plan.account
        self.plan = plan
        self.process: subprocess.Popen[bytes] | None = None
        prefix = f"rota-{plan.name.lower()}-"
        self.home = Path(tempfile.mkdtemp(prefix=prefix, dir=plan.temporary))
        self.made = [self.home]
        self.socket = self.home / "s"
        self.log = self.home / "log"
        self.data = self.home / "data"

    def prepare(self) -> None:
        """Make the folders, and run the plan's first commands."""
        if self.account is not None:
            # Only root writes here, so that no process of the account can plant a link where root
            # writes; the account passes through.
            self.home.chmod(0o711)
        self._make_private(self.socket)
        if self.plan.prepare:
            self._make_private(self.data)
        for command in self.plan.prepare:
            self._run(self._with_paths(command))

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self._listening.unlink(missing_ok=True)
        self._serve(self._with_paths(self.plan.serve))

    def stop(self, mode: str) -> None:
        """Stop the server, "fast" in order; fine if it is not running."""
        process, self.process = self.process, None
        if process is None:
            return
        if mode == "fast":
            process.terminate()
            process.send_signal(signal.SIGCONT)  # a test may have frozen it
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE[mode])
        process.kill()
        process.wait()

    def remove(self) -> None:
        """Remove the folders that were made for the server, and no others."""
        for folder in self.made:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _listening(self) -> Path:
        return self.socket / "s"

    def _with_paths(self, command: Sequence[str]) -> list[str]:
        paths = {"{data}": self.data, "{folder}": self.socket, "{socket}": self._listening}
        words = list(command)
        for name, path in paths.items():
            words = [word.replace(name, str(path)) for word in words]
        return words

    def _accepts_connections(self, pid: int) -> bool:  # noqa: ARG002 - the socket says enough
        with socket.socket(socket.AF_UNIX) as trying, suppress(OSError):
            trying.connect(str(self._listening))
            return True
        return False

    def _serve(self, command: Sequence[str]) -> None:
        with self.log.open("ab") as log:
            begin = log.tell()
            process = subprocess.Popen[bytes](command, **self._surroundings(log.fileno()))
        self.process = process
        deadline = time.monotonic() + PATIENCE["start"]
        while not self._accepts_connections(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop("immediate")
                raise ServerError(f"{self.plan.name} did not start:\n{self._log_since(begin)}")
            time.sleep(0.005)

    def _run(self, command: Sequence[str]) -> None:
        """Run a program to its end."""
        with self.log.open("ab") as log:
            begin = log.tell()
            done = subprocess.run(command, check=False, **self._surroundings(log.fileno()))
        if done.returncode != 0:
            raise ServerError(f"{Path(command[0]).name} failed:\n{self._log_since(begin)}")

    def _make_private(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if self.account is not None:
            os.chown(folder, *self.account)

    def _log_since(self, begin: int) -> str:
        with self.log.open("rb") as log:
            log.seek(begin)
            return log.read()[-3000:].decode(errors="replace").strip()

    def _surroundings(self, output: int = subprocess.DEVNULL) -> dict[str, Any]:
        """How each of the server's programs is run."""
        # The user's PGPORT or PGDATA is not meant for this server; messages are in English.
        variables = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        user, group = self.account or (None, None)
        return {
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": output,
            "cwd": "/",
            "env": {**variables, "LC_ALL": "C"},
            "user": user,
            "group": group,
            "extra_groups": None if user is None else [],
            "umask": 0o077,
        }


class Postgres(Server):
    """One database cluster and at most one postmaster."""

    def __init__(self, plan: PostgresPlan) -> None:
        super().__init__(plan)
        self.plan: PostgresPlan = plan
        self.binaries = Path(plan.binaries)
        if plan.folder is not None:
            self.data = Path(plan.folder) / "data"

    def prepare(self) -> None:
        """Make the folders and the cluster, unless there is a cluster to use."""
        super().prepare()
        if self.plan.folder is not None:
            folder = Path(self.plan.folder)
            with suppress(FileExistsError):
                folder.mkdir()
                self.made.append(folder)
                folder.chmod(0o711)
        self._make_binaries_readable()
        if not (self.data / "PG_VERSION").exists():
            self._make_private(self.data)
            self._initdb()

    def start(self) -> None:
        """Start the postmaster and wait until it accepts connections."""
        options = {
            **self.plan.settings,
            "listen_addresses": "",
            "port": "5432",
            "unix_socket_directories": str(self.socket),
        }
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        self._serve(command)

    def stop(self, mode: str) -> None:
        """Stop the postmaster; fine if it is not running."""
        postmaster, self.process = self.process, None
        if postmaster is None:
            return
        for step in ("fast", "immediate") if mode == "fast" else ("immediate",):
            postmaster.send_signal(SIGNALS[step])
            postmaster.send_signal(signal.SIGCONT)  # a test may have frozen it
            with suppress(subprocess.TimeoutExpired):
                postmaster.wait(PATIENCE[step])
                break
        postmaster.kill()
        postmaster.wait()
        self._kill_backends()
        # It names the ended postmaster's pid, which another process may get soon.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _accepts_connections(self, pid: int) -> bool:
        # The eighth line is the server's state; pg_ctl reads it the same way.
        with suppress(OSError, IndexError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return lines[0] == str(pid) and lines[7].strip() in {"ready", "standby"}
        return False

    def _kill_backends(self) -> None:
        """Kill a crashed postmaster's backends: they hold the shared memory that the next needs."""
        data = str(self.data.resolve())
        deadline = time.monotonic() + PATIENCE["immediate"]
        while (left := list(_postgres_processes_in(data))) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _make_binaries_readable(self) -> None:
        """Copy the programs where the account cannot reach them, as under /root.

        They keep their relative paths, by which they find their libraries and their share folder;
        wheels keep further libraries in a folder `<package>.libs` beside.
        """
        try:
            version = [str(self.binaries / "postgres"), "--version"]
            readable = subprocess.run(version, check=False, **self._surroundings()).returncode == 0
        except PermissionError:
            readable = False
        if readable:
            return
        root = self.binaries.parent
        package = root.parent
        copy = self.home / "software" / package.name / root.name
        for part in ("bin", "lib", "share"):
            if (root / part).is_dir():
                _copy_readable(root / part, copy / part)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            _copy_readable(libraries, self.home / "software" / libraries.name)
        for folder in (copy, copy.parent, copy.parent.parent):
            folder.chmod(0o755)
        self.binaries = copy / "bin"

    def _initdb(self) -> None:
        command = [str(self.binaries / "initdb"), "--pgdata", str(self.data), "--no-sync"]
        command += ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        self._run(command)


def _copy_readable(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder, name)
            file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _postgres_processes_in(data: str) -> Iterator[int]:
    """Find PostgreSQL's processes by their working directory, which is the data folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or it is another user's
            name = (process / "comm").read_text().strip()
            if name == "postgres" and str((process / "cwd").readlink()) == data:
                yield int(process.name)


def _adopt_orphans() -> None:
    """Become the parent of backends when their postmaster crashes, to reap them.

    In a container process 1 often does not reap, and the dead would stay in the process table.
    """
    with suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _orders(owner: int) -> Iterator[object]:
    """Read the owner's lines until the pipe or the owner ends."""
    source = sys.stdin.fileno()
    watched = [source]
    with suppress(AttributeError, OSError):  # not Linux, or before 5.3: the pipe is enough
        watched.append(os.pidfd_open(owner))
    buffer = b""
    while True:
        ready, _, _ = select.select(watched, [], [])
        if source not in ready:
            return
        chunk = os.read(source, 65536)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from map(json.loads, lines)


def _answer(**fields: object) -> None:
    with suppress(BrokenPipeError):  # the owner is gone: the end of input comes next
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def _obey(server: Server, order: object) -> None:
    if order == "prepare":
        server.prepare()
    elif order == "start":
        server.start()
    else:
        server.stop(str(order))


def main() -> None:
    """Obey the owner until it is gone."""
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    _adopt_orphans()
    # Unbuffered: the lines after the first belong to `_orders`.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source:
        plan = json.loads(source.readline())
    server = Postgres(PostgresPlan(**plan)) if "binaries" in plan else Server(Plan(**plan))
    try:
        for order in _orders(plan["owner"]):
            try:
                _obey(server, order)
            except (ServerError, OSError) as error:
                _answer(error=str(error))
            else:
                pid = server.process.pid if server.process else None
                _answer(socket=str(server.socket), pid=pid)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server.stop("immediate")
        server.remove()


if __name__ == "__main__":
    main()
