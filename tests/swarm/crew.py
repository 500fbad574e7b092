"""The processes of a swarm: workers and producers, which begin again whenever they have ended."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.fixtures.proxy import Proxy
from tests.swarm.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]

EXPECTED = {0, 3, -signal.SIGKILL, -signal.SIGTERM}
"""Exit statuses: in order, without a database at the start, killed, stopped before it began."""


class Member:
    """A process, and the next one when it has ended.

    Attributes:
        proxy: Its way to the database.
        lock: For whatever is done to the process.
        odd: Ends that are not to be expected.
        environment: Variables of the processes that begin from now on.
    """

    def __init__(
        self, module: str, name: str, *, proxy: Proxy, folder: Path, ledger: Ledger,
        environment: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.proxy = proxy
        self.lock = threading.RLock()
        self.odd: list[str] = []
        self.environment = environment
        self._module, self._name, self._folder, self._ledger = module, name, folder, ledger
        self._generation = 0
        self._enough = False
        self._process = self._begun()

    def look(self) -> None:
        """Begin again, if the process has ended."""
        with self.lock:
            if self._process.poll() is not None and not self._enough:
                self._ledger.say("dead", self._process.pid)
                self._judge()
                self._generation += 1
                self._process = self._begun()

    def kill(self) -> None:
        """End the process at once."""
        with self.lock:
            self._ledger.say("dead", self._process.pid)
            self._process.kill()
            self._process.wait()

    def kill_child(self) -> bool:
        """End a process that it has started for jobs; whether there was one."""
        with self.lock, suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children():
                if "spawn_main" in " ".join(child.cmdline()):
                    child.kill()
                    return True
        return False

    def freeze(self, seconds: float, stop: threading.Event) -> None:
        """Keep the process from doing anything for a while."""
        with self.lock:
            self._ledger.say("away", self._process.pid, seconds)
            process = self._process
            process.send_signal(signal.SIGSTOP)
        stop.wait(seconds)
        process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Let the process end in order; the next one follows."""
        with self.lock:
            self._process.terminate()

    def end(self) -> None:
        """Let it end in order, without a next one."""
        with self.lock:
            self._enough = True
        self._process.terminate()

    def ended(self, seconds: float) -> None:
        """Wait until it has."""
        try:
            self._process.wait(seconds)
            self._judge()
        except subprocess.TimeoutExpired:
            self.odd.append(f"{self._title} does not end")
            self.kill()

    def let_go(self) -> None:
        """End it at once, whatever it does, without a next one."""
        with self.lock:
            self._enough = True
            self._process.kill()
            self._process.wait()

    @property
    def _title(self) -> str:
        return f"{self._name}.{self._generation}"

    @property
    def log(self) -> Path:
        """Where the process of now logs."""
        return self._folder / "logs" / f"{self._title}.log"

    def _judge(self) -> None:
        status = self._process.returncode
        if status not in EXPECTED:
            self.odd.append(f"{self._title} ended with status {status}")

    def _begun(self) -> "subprocess.Popen[bytes]":
        environment: Mapping[str, str] = {
            **os.environ,
            **self.environment,
            "SWARM_URL": self.proxy.url,
            "SWARM_FOLDER": str(self._folder),
            "SWARM_NAME": self._title,
            "SWARM_FIRST": str(self._first()),
        }
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self._module],
                cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _first(self) -> int:
        """Where the numbers of the first hand begin, in rooms: ten for each generation."""
        slot = int(self._name.rpartition("-")[2])
        return (slot * 1000 + self._generation) * 10


def watch(members: Sequence[Member], stop: threading.Event) -> threading.Thread:
    """Let those that have ended begin again, until it is enough."""

    def look() -> None:
        while not stop.wait(0.05):
            for member in members:
                member.look()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread
