"""The types of the installed package, as type checkers find them from another project."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.package.environment import Environment

pytestmark = pytest.mark.large

FOREIGN = Path(__file__).parent / "foreign"

MYPY = ["mypy", "--output=json", "--cache-dir", os.devnull, "--python-executable"]
PYRIGHT = ["pyright", "--outputjson", "--pythonpath"]


def wrong(project: Path) -> set[int]:
    """The lines of the program that a type checker must not accept."""
    lines = (project / "shop.py").read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def refused(tool: str, said: str) -> Iterator[tuple[int, str]]:
    """The lines that a type checker did not accept, and why."""
    if tool == "mypy":
        for line in said.splitlines():
            error = json.loads(line)
            yield error["line"], error["message"]
    else:
        for error in json.loads(said)["generalDiagnostics"]:
            yield error["range"]["start"]["line"] + 1, error["message"]


@pytest.mark.parametrize("command", [MYPY, PYRIGHT], ids=lambda command: command[0])
def test_another_project_has_the_types(
    command: list[str], clean: Environment, tmp_path: Path
) -> None:
    """Two strict type checkers know the types, and refuse what is wrong and nothing else."""
    project = shutil.copytree(FOREIGN, tmp_path / "foreign")
    done = subprocess.run(
        [sys.executable, "-m", *command, str(clean.python), "."],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(refused(command[0], done.stdout))
    assert found.keys() == wrong(project), (found, done.stderr)
