"""The demo's workers: processes of `rota worker`.

Each worker reads a pipe to which only the demo could write, and stops when the pipe closes: no
worker outlives the demo, even if the demo is killed. The workers have sessions of their own, so a
Ctrl-C at the terminal reaches the demo alone, which then ends them in order.
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rota.cli.demo.tasks import URL_VARIABLE
from rota.terminal.exits import Failure

START_PATIENCE = 30.0
"""Seconds a worker may take until it claims."""

STOP_PATIENCE = 5.0
"""Seconds a worker may take to stop."""


class Member:
    """One worker."""

    def __init__(self, number: int, command: list[str], env: dict[str, str], log: Path) -> None:
        self.number = number
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def wait_ready(self, deadline: float) -> None:
        """Wait until the worker claims.

        Raises:
            Failure: The worker ended, or the time is up.
        """
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        left = max(0.0, deadline - time.monotonic())
        if not select.select([self._process.stdout], [], [], left)[0]:
            message = f"worker {self.number} has not started within {START_PATIENCE:.0f} seconds"
            raise Failure(message)
        if not self._process.stdout.readline():
            self._process.wait(STOP_PATIENCE)
            message = f"worker {self.number} ended at its start: {self.last_words()}"
            raise Failure(message)

    def freeze(self) -> bool:
        """Stop the process in its tracks; false if it has ended."""
        self._process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return False

    def thaw(self) -> None:
        """Let the process go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9`."""
        self._process.kill()
        self._process.wait()

    def ask_to_stop(self) -> None:
        """Ask as a service manager does."""
        if self.running:
            self._process.terminate()

    def end(self, deadline: float) -> None:
        """Wait until the worker has stopped; kill it if it does not."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def last_words(self) -> str:
        """The end of the worker's log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].removeprefix("Error: ") if lines else "it left no message"


class Crew:
    """All workers; leaving its `with` block stops them.

    Args:
        url: The database.
        queue: The queue that they take jobs from.
        size: How many workers.
        session_timeout: Seconds after which a silent worker counts as dead.
        folder: For their logs.
    """

    def __init__(
        self, url: str, queue: str, size: int, session_timeout: float, folder: Path
    ) -> None:
        # -P: import nothing from the current folder.
        command = [
            sys.executable, "-P", "-m", "rota", "worker", "rota.cli.demo.tasks:rota", "--tied",
            "--queue", queue, "--session-timeout", str(session_timeout), "--grace", "2",
        ]  # fmt: skip
        env = {**os.environ, URL_VARIABLE: url}
        self.members: list[Member] = []
        try:
            for number in range(1, size + 1):
                log = folder / f"worker-{number}.log"
                self.members.append(Member(number, command, env, log))
        except BaseException:
            self.stop()
            raise

    def wait_ready(self) -> None:
        """Wait until all workers claim.

        Raises:
            Failure: A worker does not start.
        """
        deadline = time.monotonic() + START_PATIENCE
        for member in self.members:
            member.wait_ready(deadline)

    @property
    def running(self) -> int:
        """How many workers are running.

        Raises:
            Failure: None is left.
        """
        count = sum(member.running for member in self.members)
        if not count:
            message = f"no worker is left: {self.members[-1].last_words()}"
            raise Failure(message)
        return count

    def stop(self) -> None:
        """Stop all workers in order."""
        for member in self.members:
            member.ask_to_stop()
        deadline = time.monotonic() + STOP_PATIENCE
        for member in self.members:
            member.end(deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
