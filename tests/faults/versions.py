"""Rota's code of several versions, and its processes: producers, workers and commands together."""

import io
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Self

import pytest

from tests.faults.processes import until

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]

LONG = 60.0

APP = """
import os
import sys
from pathlib import Path

import rota as code
from rota import Again, Backoff, Context, Limit, Rota

HERE = Path(__file__).parent
NAME = os.environ["CODE"]
assert Path(code.__file__).is_relative_to(HERE / NAME), code.__file__
AT_ONCE = Backoff(first=0.01)
rota = Rota()


def note(what, number):
    with open(HERE / "ledger", "ab", buffering=0) as ledger:
        ledger.write(f"{what} {number} {NAME}\\n".encode())


@rota.task
def plain(number: int) -> None:
    note("ran", number)


@rota.task
async def later(number: int) -> None:
    note("ran", number)


@rota.task(retry=AT_ONCE)
def failing(number: int, context: Context) -> None:
    if context.attempt == 1:
        raise ValueError("once")
    note("ran", number)


@rota.task(limit=Limit("one", running=1))
def limited(number: int) -> None:
    note("begin", number)
    note("ran", number)


@rota.task(fair="{number}")
def fair(number: int) -> None:
    note("ran", number)


@rota.task(unique="{number}")
def unique(number: int) -> None:
    note("ran", number)


@rota.task(unique="{number}")
def rounds(number: int) -> Again | None:
    note("round", number)
    if (HERE / "ledger").read_text().count(f"round {number} ") < 3:
        return Again(after=0.01)
    note("ran", number)


@rota.task
def transaction(number: int, context: Context) -> None:
    with context.transaction():
        pass
    note("ran", number)


@rota.task(batch=10, within=0.01)
def batch(jobs: list[int]) -> None:
    for job in jobs:
        note("ran", job)


@rota.task(retry=AT_ONCE)
def held(number: int) -> None:
    import time

    note("held", number)
    while not (HERE / f"go {number}").exists():
        time.sleep(0.01)
    note("ran", number)


def enqueue(kind, queue, number):
    task = rota.tasks[f"app.{kind}"]
    given = {"delay": 0.05} if kind == "later" else {}
    with rota.transaction() as tx:
        for _ in range(2 if kind == "unique" else 1):
            task.using(queue=queue, conn=tx, **given).enqueue(number)


if __name__ == "__main__":
    import app

    for line in sys.stdin:
        kind, queue, number = line.split()
        app.enqueue(kind, queue, int(number))
        print(number, flush=True)
"""

KINDS = (
    "plain", "later", "failing", "limited", "fair", "unique", "rounds", "transaction", "batch",
)  # fmt: skip
"""All tasks of the app but `held`, whose jobs wait for a file."""


class Code:
    """The code of one version, in a folder of its own beside the app."""

    def __init__(self, folder: Path, name: str, url: str) -> None:
        self.folder = folder
        self.name = name
        self.url = url

    @property
    def environment(self) -> dict[str, str]:
        """That of its processes."""
        given = {"CODE": self.name, "ROTA_DATABASE_URL": self.url}
        return {**os.environ, **given, "PYTHONPATH": str(self.folder / self.name)}

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run one of its commands to its end."""
        return subprocess.run(
            [sys.executable, "-m", "rota", *words],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=LONG,
            check=False,
        )  # fmt: skip


class Process:
    """A process of some code's: a worker, or a producer, which is told what to enqueue."""

    def __init__(self, code: Code, *words: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, *words],
            env=code.environment, cwd=code.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.said = ""
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.popen.stderr is not None
        with self.popen.stderr as stderr:
            for line in stderr:
                self.said += line

    def enqueue(self, number: int, kind: str, queue: str) -> None:
        """Have a job stored, and wait for that."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(f"{kind} {queue} {number}\n")
        assert self.popen.stdout.readline() == f"{number}\n", self.said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failed: object) -> None:
        with self.popen:
            self.popen.kill()
            self._listener.join()
        if failed[0]:
            logger.error("%d said:\n%s", self.popen.pid, self.said)


class Shop:
    """The app's folder: its ledger, and how its processes are started."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._numbers = iter(range(1, 10_000))
        (folder / "app.py").write_text(APP, encoding="utf-8")
        (folder / "ledger").touch()

    def worker(self, code: Code, queue: str) -> Process:
        """Start a worker, and wait until it works."""
        words = ("worker", "app:rota", "--queue", queue, "--session-timeout", "3")
        worker = self._stack.enter_context(Process(code, "-m", "rota", *words))
        until(lambda: "worker started" in worker.said or worker.popen.poll(), "a worker", LONG)
        assert worker.popen.poll() is None, worker.said
        return worker

    def producer(self, code: Code) -> Process:
        """Start a producer."""
        return self._stack.enter_context(Process(code, "app.py"))

    def enqueue_all(self, *producers: Process, queue: str = "first") -> set[int]:
        """A job of each kind by each producer."""
        return {self.enqueue(by, kind, queue) for kind in KINDS for by in producers}

    def enqueue(self, by: Process, kind: str, queue: str) -> int:
        """A job of a kind."""
        number = next(self._numbers)
        by.enqueue(number, kind, queue)
        return number

    def noted(self, what: str) -> Mapping[int, list[str]]:
        """Which code's processes have noted this, by the number of the job."""
        text = (self.folder / "ledger").read_text("ascii")
        found: dict[int, list[str]] = {}
        for line in text[: text.rfind("\n") + 1].splitlines():
            said, number, name = line.split()
            if said == what:
                found.setdefault(int(number), []).append(name)
        return found

    def ran(self, jobs: set[int], by: Code) -> None:
        """Wait until jobs have run, all of them in this code's workers, and once."""
        until(lambda: self.noted("ran").keys() >= jobs, f"{jobs} to run", LONG)
        ran = self.noted("ran")
        assert {number: ran[number] for number in jobs if ran[number] != [by.name]} == {}

    def held(self, number: int, by: Code) -> None:
        """Wait until a job is held in this code's worker."""
        until(lambda: by.name in self.noted("held").get(number, ()), f"{number} to begin", LONG)

    def go(self, number: int) -> None:
        """Let a job that is held come to its end."""
        (self.folder / f"go {number}").touch()


@contextmanager
def shop_in(folder: Path) -> Iterator[Shop]:
    """An app in a folder; its processes end with the block."""
    with ExitStack() as stack:
        yield Shop(folder, stack)


def code_of(commit: str, folder: Path) -> None:
    """Lay the code of a commit into a folder; without git's history the test is skipped."""
    git = shutil.which("git") or pytest.skip("there is no git")
    found = subprocess.run(
        [git, "archive", commit, "src/rota"], cwd=ROOT, capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip(f"no code of {commit}, as in a clone without history: {found.stderr.decode()}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "src" / "rota").rename(folder / "rota")


def code_here(folder: Path) -> None:
    """Lay the code as it is into a folder."""
    shutil.copytree(ROOT / "src" / "rota", folder / "rota")


def add_migration(folder: Path, store: str, sql: str) -> None:
    """Give code a version more, to which this leads."""
    package = folder / "rota" / "store" / store
    module = package / "schema.py"
    text = module.read_text("utf-8")
    [version] = map(int, re.findall(r"^VERSION = (\d+)$", text, re.MULTILINE))
    module.write_text(text.replace(f"VERSION = {version}\n", f"VERSION = {version + 1}\n"), "utf-8")
    (package / "migrations" / f"{version + 1:04}_later.sql").write_text(sql, "utf-8")
