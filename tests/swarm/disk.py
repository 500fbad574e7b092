"""A small file system for a server's data, which can be filled: where mounting is possible."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from tests.fixtures.memory import MEMORY

SIZE = "700m"


class Disk:
    """One that is mounted.

    Attributes:
        folder: Where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def mounted(cls, stack: ExitStack) -> Self | None:
        """Mount one in memory, until the stack is closed; None where that is not allowed."""
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-disk-", dir=MEMORY))
        Path(folder).chmod(0o755)
        options = ["-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", folder]
        try:
            done = subprocess.run(["mount", *options], check=False, capture_output=True)  # noqa: S607
        except OSError:
            return None
        if done.returncode:
            return None
        stack.callback(subprocess.run, ["umount", "--lazy", folder], check=False)
        return cls(Path(folder))

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room on it."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file:
            piece = bytes(1024 * 1024)
            try:
                while True:
                    os.write(file.fileno(), piece)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        try:
            yield
        finally:
            filler.unlink()
