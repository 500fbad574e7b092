"""What handlers write down: which job ran, when its enqueue was called, and when its handler began.

Each process of a worker has a file of its own, which it maps into its memory. A record costs a
microsecond, and no system call. The file begins with the number of its records, written last.
All moments are of the monotonic clock that the machine's processes share.
"""

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROW = struct.Struct("<qdd")
HEAD = struct.Struct("<q")
CAPACITY = 2_000_000
"""Records that a file has room for; it takes no more of the disk than there are."""

WARM_UP = -1
"""The number of a job that shows that all is connected, and does not count."""


class Record(NamedTuple):
    """One run of a handler; moments in seconds."""

    number: int
    enqueued: float
    started: float


class Recorder:
    """A handler's side; also in processes that a worker forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = 0
        self._count = 0
        self._lock = threading.Lock()
        self._file: mmap.mmap

    def __call__(self, number: int, enqueued: float) -> None:
        """Write a record of a handler that begins now."""
        started = time.monotonic()
        with self._lock:
            if self._process != os.getpid():
                self._open()
            ROW.pack_into(self._file, HEAD.size + self._count * ROW.size, number, enqueued, started)
            self._count += 1
            HEAD.pack_into(self._file, 0, self._count)

    def _open(self) -> None:
        size = HEAD.size + CAPACITY * ROW.size
        with (self._folder / f"{os.getpid()}.records").open("w+b") as file:
            file.truncate(size)
            self._file = mmap.mmap(file.fileno(), size)
        self._process = os.getpid()
        self._count = 0


def count(folder: Path) -> int:
    """How many records there are, warm-ups included."""
    return sum(_head(path) for path in folder.glob("*.records"))


def read(folder: Path) -> list[Record]:
    """All records but those of warm-ups."""
    return [
        record
        for path in folder.glob("*.records")
        for record in _rows(path)
        if record.number != WARM_UP
    ]


def _head(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(HEAD.size)
    # A file that is just being made is empty.
    return int(HEAD.unpack(head)[0]) if len(head) == HEAD.size else 0


def _rows(path: Path) -> Iterator[Record]:
    rows = _head(path)
    with path.open("rb") as file:
        file.seek(HEAD.size)
        data = file.read(rows * ROW.size)
    return map(Record._make, ROW.iter_unpack(data))
