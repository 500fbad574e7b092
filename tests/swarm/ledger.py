"""The ledger: what producers, handlers and faults say, in files that belong to no database.

Each process appends whole lines to a file of its own, which is named by its process id. What was
written survives the process, whatever happens to that. The clock is the monotonic one, which all
share.

    tried FIRST COUNT TASK HOW     jobs of these numbers are about to be enqueued
    sure FIRST COUNT               their commit was acknowledged
    never FIRST COUNT              they were rolled back, or not stored
    start CALL NUMBER ATTEMPT JOB KEY    a handler is called; KEY is `-` where the job has none
    end CALL                       it has done its work
    left CALL                      it was stopped before that
    lost                           the worker has given its session up
    dead PID                       a process is killed, or was found dead
    away PID SECONDS               a process is frozen for so long
    fault KIND SECONDS             a fault that began so many seconds ago is over
    tail SECONDS                   what was committed in the last SECONDS may be lost
    moved SECONDS                  sessions of before are not known any more
    attached                       there is a standby, and commits wait for it
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """What was said, by which process, and at what moment."""

    at: float
    pid: int
    what: str
    words: tuple[str, ...]


class Ledger:
    """The file of one process."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._pid = 0
        self._file = -1

    def say(self, what: str, *words: object) -> None:
        """Append a line; it is written when this returns."""
        if self._pid != os.getpid():  # a child process begins a file of its own
            path = self._folder / f"{self._name}.{os.getpid()}"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            # Last: several threads may begin at once, and each may open the file.
            self._pid = os.getpid()
        line = " ".join((f"{time.monotonic():.6f}", what, *map(str, words)))
        os.write(self._file, f"{line}\n".encode())


def read(folder: Path) -> list[Line]:
    """All lines of all processes, in their order in time."""
    return sorted(line for file in folder.iterdir() for line in _lines(file))


def _lines(file: Path) -> Iterator[Line]:
    pid = int(file.name.rpartition(".")[2])
    for text in file.read_text(encoding="utf-8").splitlines():
        at, what, *words = text.split(" ")
        yield Line(float(at), pid, what, tuple(words))
