"""The documentation's site, built for a test as `make docs` builds it."""

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def built(folder: Path) -> Path:
    """Build the site into a folder; a warning is a failure."""
    command = [sys.executable, "-m", "website", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder
