"""Who built a distribution, where and when, leaves no trace in it, nor does what lay around."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.package.built import held

GIT = shutil.which("git") or ""

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(
        not GIT or not (ROOT / ".git").exists(), reason="these sources are no clone"
    ),
]


def clone(folder: Path, umask: int) -> Path:
    """The last commit, in a folder of that name, with something beside it that tools may leave."""
    subprocess.run([GIT, "clone", "--quiet", str(ROOT), str(folder)], check=True, umask=umask)
    for junk in ("tests/__pycache__/junk.pyc", "lab/src/rota_lab/__pycache__/junk.pyc", "rota.db"):
        (folder / junk).parent.mkdir(exist_ok=True)
        (folder / junk).touch()
    return folder


def build(folder: Path, umask: int, **environment: str) -> dict[str, Path]:
    """Build both distributions as `make dist` does; the files by their names."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder / "dist")]
    for project in (folder, folder / "lab"):
        variables = {**os.environ, **environment}
        subprocess.run(
            command, cwd=project, env=variables, umask=umask, check=True, capture_output=True
        )
    return {file.name: file for file in (folder / "dist").iterdir()}


def tracked(folder: Path) -> set[str]:
    """The files that git knows."""
    command = [GIT, "ls-files"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_two_clones_give_the_same_bytes(tmp_path: Path) -> None:
    """Wheels and sdists of two clones are equal, whatever place, umask, time zone and hash seed."""
    one = build(clone(tmp_path / "one", 0o022), 0o022, TZ="UTC", PYTHONHASHSEED="1")
    other = build(clone(tmp_path / "the other", 0o077), 0o077, TZ="Asia/Tokyo", PYTHONHASHSEED="2")
    assert len(one) == 4
    assert {name: file.read_bytes() for name, file in one.items()} == {
        name: file.read_bytes() for name, file in other.items()
    }


def test_sdists_have_the_repository_and_no_more(tmp_path: Path) -> None:
    """An sdist has the files that git knows and that are useful in it, and no stray ones."""
    folder = clone(tmp_path / "rota", 0o022)
    built = {
        name: held(file) for name, file in build(folder, 0o022).items() if name.endswith(".gz")
    }
    [ours] = [names for name, names in built.items() if name.startswith("rota-")]
    [lab] = [names for name, names in built.items() if name.startswith("rota_lab-")]
    files = tracked(folder)
    in_a_clone_alone = {file for file in files if file.startswith(("benchmarks/", ".github/"))}
    assert ours == files - in_a_clone_alone | {"PKG-INFO"}
    of_the_lab = {file.removeprefix("lab/") for file in files if file.startswith("lab/")}
    assert lab - {".gitignore"} == of_the_lab | {"PKG-INFO"}
