"""Distributions, built as `make dist` builds them."""

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile


class Built(NamedTuple):
    """One distribution: its packages in this repository, and what was built of it."""

    packages: tuple[Path, ...]
    wheel: Path
    sdist: Path

    @property
    def package(self) -> Path:
        """The first of its packages."""
        return self.packages[0]

    def modules(self) -> dict[str, str]:
        """The wheel's Python files, with their sources."""
        with ZipFile(self.wheel) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".py")]
            return {name: wheel.read(name).decode() for name in names}


def build(project: Path, folder: Path) -> tuple[Path, Path]:
    """Build a project's wheel and sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def files(folder: Path) -> set[str]:
    """The files below a folder, relative to its parent; not what tools leave there."""
    found = (file.relative_to(folder.parent) for file in folder.rglob("*") if file.is_file())
    return {
        str(file)
        for file in found
        if not any(part.startswith((".", "__pycache__")) for part in file.parts)
    }


def held(sdist: Path) -> set[str]:
    """The files of an sdist, without the folder that they are in."""
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}
