"""Real servers in processes of their own: uvicorn."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.fixtures.workers import LONG

ROOT = Path(__file__).parents[2]


class Server:
    """A server that has started: where it is, and what it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self.url = ""
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.said.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, words: str) -> str:
        """The line with these words, once it is there."""

        def found() -> list[str]:
            return [line for line in self.said if words in line]

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, LONG)
            assert found(), "".join(self.said)
            return found()[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit status."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        status = self.process.wait(LONG)
        self._reader.join(LONG)
        return status


def uvicorn(
    target: str, folder: Path, *options: str, **environment: str
) -> AbstractContextManager[Server]:
    """Serve an application of a folder on a free port; the server is killed at the end."""
    return serving(
        folder, "uvicorn", target, "--port=0", "--no-access-log", *options, **environment
    )


@contextmanager
def serving(folder: Path, module: str, *options: str, **environment: str) -> Iterator[Server]:
    """Run a module in a folder; it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *options],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(["src", str(ROOT / "src")]),
            **environment,
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Server(process)
        finally:
            process.kill()


def address(server: Server) -> str:
    """Where a server listens."""
    line = server.wait_for("Uvicorn running on")
    return next(word for word in line.split() if word.startswith("http"))
