"""The demo's files: regular files that this user may read. Links are not followed."""

import os
import stat
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

NOT_THE_LIBRARY = frozenset({"__pycache__", "site-packages", "dist-packages"})
"""Folders in the standard library's folder that are not part of the library."""


@dataclass
class Found:
    """The files of a folder, in the order of their names.

    Attributes:
        folder: Its absolute path.
        paths: The files' absolute paths.
        size: Bytes of all files.
        skipped: Paths that cannot be read.
    """

    folder: Path
    paths: list[str] = field(default_factory=list)
    size: int = 0
    skipped: list[str] = field(default_factory=list)


def find_files(folder: Path | None) -> Found:
    """Look through a folder, by default the Python standard library's."""
    leave_out = frozenset[str]() if folder else NOT_THE_LIBRARY
    found = Found((folder or Path(sysconfig.get_path("stdlib"))).resolve())
    walk = os.walk(found.folder, onerror=lambda error: found.skipped.append(str(error.filename)))
    for where, folders, names in walk:
        folders[:] = sorted(name for name in folders if name not in leave_out)
        for name in sorted(names):
            _look_at(f"{where}/{name}", found)
    return found


def _look_at(path: str, found: Found) -> None:
    try:
        status = os.lstat(path)
    except OSError:
        found.skipped.append(path)
        return
    if not stat.S_ISREG(status.st_mode):
        return
    # A name that is no text cannot be in a job's args.
    if not os.access(path, os.R_OK) or path.encode("utf-8", "ignore") != os.fsencode(path):
        found.skipped.append(path)
        return
    found.paths.append(path)
    found.size += status.st_size
