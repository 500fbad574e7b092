"""A driver's processes."""

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.field import Peer, Runtime

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PYTHON = ROOT / ".cache" / "peers" / "venv" / "bin" / "python"
MODULES = HERE / "node_modules"

INSTALLED: Mapping[Runtime, str] = {
    "rota": "Rota's environment",
    "python": f"the Python peers' environment, {PYTHON.parents[1].relative_to(ROOT)},",
    "node": f"what the Node.js peers need, in {MODULES.relative_to(ROOT)},",
}

PATIENCE = 60.0
"""Seconds in which a driver must have begun, and done whatever has no time of its own."""

GRACE = 10.0
"""Seconds that a worker has to end by itself."""


class DriverFailed(Exception):
    """A driver's process ended early, or does not answer; the message has the end of its log."""


def program(peer: Peer) -> list[str]:
    """The command line of a peer's driver; the first word may not be there."""
    module = f"benchmarks.peers.drivers.{peer.driver}"
    match peer.runtime:
        case "rota":
            return [sys.executable, "-m", module]
        case "python":
            return [str(PYTHON), "-m", module]
        case "node":
            # Of those that package.json names, that of this machine is there.
            found = next(map(str, MODULES.glob("node-*/bin/node")), None) or shutil.which("node")
            return [found or "node", str(HERE / "drivers" / f"{peer.driver}.mjs")]


class Driver:
    """Starts the processes of one peer on one database.

    Attributes:
        url: The database.
        records: The folder with the handlers' records.
        version: The peer's, once it is known.
    """

    def __init__(self, peer: Peer, url: str, folder: Path, workers: int) -> None:
        self.url = url
        self.records = folder
        self.version = ""
        self._program = program(peer)
        self._ends_by = peer.ends_by
        self._log = folder / "log"
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._environment = {
            **os.environ,
            # Rota's own environment may find Rota by it; the peers' is complete.
            "PYTHONPATH": os.pathsep.join(filter(None, paths))
            if peer.runtime == "rota"
            else str(ROOT),
            "PEERS_URL": url,
            "PEERS_RECORDS": str(folder),
            "PEERS_WORKERS": str(workers),
        }

    def ask(self, *words: str, limit: float = PATIENCE) -> dict[str, Any]:
        """Let a process do something, and return its answer.

        Raises:
            DriverFailed: It failed, or did not end within the limit in seconds.
        """
        with self.started(*words) as process:
            return process.answer(limit)

    @contextlib.contextmanager
    def started(self, *words: str, count: int = 1) -> "Iterator[Process]":
        """A process that does something, ended with the block."""
        with self.crew(*words, count=count) as processes:
            yield processes[0]

    @contextlib.contextmanager
    def crew(self, *words: str, count: int) -> "Iterator[Sequence[Process]]":
        """So many processes that do the same; those that still run are ended with the block."""
        processes: list[Process] = []
        try:
            for _ in range(count):
                command = [*self._program, *words]
                processes.append(Process(command, self._environment, self._log, self._ends_by))
            yield processes
        finally:
            stop(processes)


class Process:
    """One process, with a process group of its own."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        ends_by: signal.Signals,
    ) -> None:
        self._log = log
        self._ends_by = ends_by
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    def answer(self, limit: float = PATIENCE) -> dict[str, Any]:
        """The next line that it says.

        Raises:
            DriverFailed: There was none within the limit in seconds.
        """
        output = self._process.stdout
        assert output is not None  # noqa: S101 - a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            ready = selector.select(limit)
        line = output.readline() if ready else b""
        if not line:
            why = "ended early" if ready else f"did not answer within {limit:.0f} seconds"
            raise DriverFailed(f"the driver {why}{self._last_words()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def tell(self, line: object = "go") -> None:
        """Tell it something in a line of JSON.

        Raises:
            DriverFailed: It is gone.
        """
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise DriverFailed(f"the driver ended early{self._last_words()}") from error

    def end(self) -> None:
        """Ask it to end in good order."""
        if self._process.poll() is None:
            self._process.send_signal(self._ends_by)

    def wait(self, limit: float) -> None:
        """Wait for its end, for so many seconds at most."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, limit))

    def close(self) -> None:
        """Kill what is left of it and of its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f": {' / '.join(line.strip() for line in lines[-3:])}" if lines else ""


def stop(processes: Sequence[Process]) -> None:
    """End processes: in good order, then harsher. Fine if they have ended."""
    for process in processes:
        process.end()
    end = time.monotonic() + GRACE
    for process in processes:
        process.wait(end - time.monotonic())
    for process in processes:
        process.close()
