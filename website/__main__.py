"""Build the site: `python -m website [FOLDER]`, into build/site where no folder is named."""

import sys
from pathlib import Path

from website.building import build
from website.repository import ROOT

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    status = build(target)
    if status == 0:
        print(f"{target / 'index.html'}")
    sys.exit(status)
