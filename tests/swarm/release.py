"""An older revision of Rota, with which a swarm begins; halfway it is replaced by that of today."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.swarm.crew import ROOT


class Release:
    """Rota's code of a revision, in a folder.

    Args:
        revision: As git names it.
        folder: For the code.
    """

    def __init__(self, revision: str, folder: Path) -> None:
        archive = ["git", "archive", revision, "src"]
        packed = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        self._source = folder / "src"

    @property
    def environment(self) -> dict[str, str]:
        """What makes Python find this code first."""
        found = os.environ.get("PYTHONPATH", "")
        return {"PYTHONPATH": os.pathsep.join([str(self._source), *filter(None, [found])])}

    def migrate(self, url: str) -> None:
        """Make the tables of the revision."""
        command = [sys.executable, "-m", "rota", "migrate", "--url", url]
        environment = {**os.environ, **self.environment}
        subprocess.run(command, check=True, capture_output=True, env=environment)
