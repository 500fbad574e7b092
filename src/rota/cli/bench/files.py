"""Files that a report is written to: looked at before the run, written after it."""

import errno
import os
from pathlib import Path

from rota.terminal.exits import USAGE, Failure


def check(option: str, path: Path) -> None:
    """Fail now, and not after an hour, where a file cannot be written.

    Raises:
        Failure: Its folder is missing, it is a folder itself, or may not be written.
    """
    folder = path.absolute().parent
    try:
        if path.is_dir():
            raise Failure(f"{option} {path} is a folder; name a file in it", USAGE)
        if not folder.is_dir():
            raise Failure(
                f"{option}: there is no folder {path.parent} to write {path.name} to; "
                "create it first", USAGE,
            )  # fmt: skip
        if not path.exists():
            # The only way to know: a folder may be full, read-only, or refuse the name.
            path.open("xb").close()
            path.unlink()
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise Failure(
            f"{option} {path} cannot be written: {error.strerror}; choose another file", USAGE
        ) from error


def write(path: Path, text: bytes) -> None:
    """Write the file.

    Raises:
        Failure: It cannot be written.
    """
    try:
        path.write_bytes(text)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}; choose another file") from error
