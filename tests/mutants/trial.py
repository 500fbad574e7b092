"""Trying a mutant: on a copy of the tree, in a process of its own, with its tests alone."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import ROOT, Mutant

COPIED = ("src", "lab/src", "tests", "examples", "pyproject.toml")

FAILED = 1
"""The exit status of pytest where tests ran and failed."""

LEFT_OUT = 5
"""The same where no test ran, since all are large."""

DEADLINE = 180.0
"""Seconds that the tests of one mutant may take."""

OPTIONS = (
    "-q", "--tb=no", "--timeout=30",
    # With no other plugins it begins in half the time.
    "-p", "pytest_timeout", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider",
)  # fmt: skip

NONSENSE = re.compile(
    r"\b(SyntaxError|NameError|ImportError|ModuleNotFoundError)\b|syntax error at|does not exist"
)
"""What says that the change is no program. A test that fails for this has not noticed the promise."""


class Verdict(StrEnum):
    """What became of a mutant."""

    RED = "red"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN"


class Trial(NamedTuple):
    """How a mutant was tried: the verdict, why, and in how many seconds."""

    mutant: Mutant
    verdict: Verdict
    why: str
    seconds: float


class Copy:
    """A copy of the tree, whose tests and their child processes import what is in it."""

    def __init__(self, folder: Path, server: str) -> None:
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, folder / name)
        self._folder = folder
        self._changes = 0
        self._environment = {
            **os.environ,
            # Before site-packages, where an editable install names the tree itself.
            "PYTHONPATH": os.pathsep.join(str(folder / name) for name in COPIED[:2]),
            "ROTA_REQUIRE": "postgres",
            "ROTA_TEST_POSTGRES": server,
            "COLUMNS": "250",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        found = self.run("-c", "import rota; print(rota.__file__)")[1].strip()
        if not Path(found).is_relative_to(folder):
            message = f"the copy's Python imports {found}"
            raise RuntimeError(message)

    def missing(self, tests: Sequence[str]) -> set[str]:
        """Those of these tests that pytest does not find."""
        _, said = self._pytest(["--collect-only", *tests], DEADLINE)
        found = re.findall(r"^ERROR: not found: (.*)$", said, re.MULTILINE)
        return {one.removeprefix(f"{self._folder}{os.sep}") for one in found}

    def failing(self, tests: Sequence[str], processes: int) -> set[str]:
        """Run these tests without any mutant; those that fail.

        Raises:
            RuntimeError: They cannot be run, or some are skipped.
        """
        several = ("-p", "xdist", "-n", str(processes))
        code, said = self._pytest([*several, *tests], DEADLINE * 10)
        if code not in {0, FAILED} or "skipped" in said:
            raise RuntimeError(said)
        found = re.findall(r"^(?:FAILED|ERROR) (.*)$", said, re.MULTILINE)
        return {one.partition(" - ")[0] for one in found}

    def attempt(self, mutant: Mutant) -> Trial:
        """Apply a mutant, run its tests, and undo it."""
        began = time.monotonic()
        try:
            with self.changed(mutant):
                verdict, why = _judged(*self._pytest(["-x", *mutant.tests], DEADLINE))
        except ValueError as error:
            verdict, why = Verdict.BROKEN, str(error)
        return Trial(mutant, verdict, why, time.monotonic() - began)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """In the block the mutant is applied.

        Raises:
            ValueError: Its text is not there.
        """
        file = self._folder / mutant.file
        source, status = file.read_text(encoding="utf-8"), file.stat()
        try:
            file.write_text(mutant.applied(source), encoding="utf-8")
            # Python believes its cache of a file of the same second and size.
            self._changes += 1
            os.utime(file, (status.st_atime, status.st_mtime + self._changes))
            yield
        finally:
            file.write_text(source, encoding="utf-8")
            os.utime(file, (status.st_atime, status.st_mtime))

    def _pytest(self, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
        code, said = self.run("-m", "pytest", *OPTIONS, *arguments, seconds=seconds)
        if code == LEFT_OUT:
            large = {"ROTA_TEST_LARGE": "1"}
            code, said = self.run("-m", "pytest", *OPTIONS, *arguments, seconds=seconds, more=large)
        return code, said

    def run(
        self, *arguments: str, seconds: float = DEADLINE, more: Mapping[str, str] | None = None
    ) -> tuple[int | None, str]:
        """Run Python in the copy: the exit status, none if it took too long, and what it said.

        `more` is for its environment.
        """
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._folder,
            env=self._environment | dict(more or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said, _ = process.communicate()
                return None, f"{said}\nno end within {seconds:.0f} seconds"
            return process.returncode, said


def _judged(code: int | None, said: str) -> tuple[Verdict, str]:
    """The verdict: red only if a test ran and failed."""
    failed = re.search(r"^FAILED (.*)", said, re.MULTILINE)
    # What a failed test leaves running may keep the process.
    if code in {FAILED, None} and failed is not None:
        why = failed[1].partition(" - ")[2]
        return (Verdict.BROKEN if NONSENSE.search(why) else Verdict.RED), why
    if code == 0:
        return (Verdict.BROKEN if "skipped" in said else Verdict.SURVIVED), _last(said)
    return Verdict.BROKEN, _last(said)


def _last(said: str) -> str:
    return (said.strip().splitlines() or ["nothing was said"])[-1]
