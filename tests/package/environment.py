"""Environments in which nothing is installed but what wheels declare, made without a network.

What the wheels need is linked from the environment of the tests: only the distributions that are
declared, with what these need in turn. pip then installs the wheels, and refuses what is missing.
"""

import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement


def metadata(wheel: Path) -> Distribution:
    """What a wheel says of itself."""
    return next(iter(distributions(path=[str(wheel)])))


class Environment:
    """A virtual environment with some wheels."""

    def __init__(self, folder: Path, *wheels: Path) -> None:
        venv.create(folder, symlinks=True)
        places = {"base": str(folder), "platbase": str(folder)}
        self.bin = Path(sysconfig.get_path("scripts", "venv", places))
        self.python = self.bin / "python"
        site = Path(sysconfig.get_path("purelib", "venv", places))
        for needed in _needed({found.name: found for found in map(metadata, wheels)}).values():
            _link(needed, site)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--no-index"]
        subprocess.run([*pip, "--quiet", "--no-compile", *map(str, wheels)], check=True)

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command that finds this environment's programs first."""
        return subprocess.run(
            command,
            cwd=cwd,
            env={"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(cwd)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def _needed(own: dict[str, Distribution]) -> dict[str, Distribution]:
    """What wheels need besides each other, directly or not."""
    found = {}
    waiting = [(wheel, "") for wheel in own.values()]
    for needing, extra in waiting:  # which grows meanwhile
        for line in needing.requires or ():
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = requirement.name
            needed = own.get(name) or distribution(name)
            waiting += [(needed, wanted) for wanted in ("", *requirement.extras)]
            found[name] = needed
    return {name: needed for name, needed in found.items() if name not in own}


def _link(installed: Distribution, site: Path) -> None:
    """Make an installed distribution visible in another environment."""
    files = installed.files or ()
    for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        (site / name).symlink_to(Path(str(installed.locate_file(name))).resolve())
