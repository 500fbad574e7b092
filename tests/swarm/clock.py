"""A clock that jumps: the servers', by libfaketime, where Debian's package of that name is installed.

The servers' own program alone goes by it: the folder of PostgreSQL's programs is one of links, in
which that program is a script that loads the library first.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rota.measure.servers import find_binaries
from rota.measure.servers.binaries import VARIABLE
from tests.fixtures.memory import MEMORY

LIBRARIES = [
    Path(f"/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1")
    for machine in ("x86_64", "aarch64")
]

SCRIPT = """#!/bin/sh
export LD_PRELOAD='{library}' FAKETIME_TIMESTAMP_FILE='{file}' FAKETIME_CACHE_DURATION=1
export FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_RESET=1 FAKETIME_DISABLE_SHM=1
exec '{program}' "$@"
"""


class Clock:
    """The clock of the servers that are started in a `with` block of `worn`."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._file = folder / "clock"
        self._set(0.0)
        programs = find_binaries()
        for program in programs.iterdir():
            if program.name != "postgres":
                (folder / program.name).symlink_to(program)
        script = folder / "postgres"
        text = SCRIPT.format(library=library, file=self._file, program=programs / "postgres")
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)

    @contextmanager
    def jumped(self, seconds: float) -> Iterator[None]:
        """It is off by so much."""
        self._set(seconds)
        try:
            yield
        finally:
            self._set(0.0)

    def _set(self, seconds: float) -> None:
        # Replaced as a whole: the servers read it once a second.
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.3f}\n", encoding="ascii")
        new.chmod(0o644)
        new.replace(self._file)


@contextmanager
def worn() -> Iterator[Clock | None]:
    """Servers that start in the block go by a clock that can jump; None without libfaketime."""
    library = next((path for path in LIBRARIES if path.exists()), None)
    if library is None:
        yield None
        return
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="rota-clock-", dir=MEMORY) as folder:
        Path(folder).chmod(0o755)
        clock = Clock(Path(folder), library)
        os.environ[VARIABLE] = folder
        try:
            yield clock
        finally:
            del os.environ[VARIABLE]
            if before is not None:
                os.environ[VARIABLE] = before
