"""From the facts of a SQLite file to findings: pure, without a file."""

from typing import Any

import pytest

from rota.doctor.file import affected
from rota.doctor.finding import Severity, worst
from tests.doctor import facts as given

OK, NOTE, WARNING, CRITICAL = Severity
MIB = 1024**2


@pytest.mark.parametrize(
    ("version", "bad"),
    [("3.6.23", False), ("3.7.0", True), ("3.40.1", True), ("3.44.5", True), ("3.44.6", False),
     ("3.45.0", True), ("3.50.6", True), ("3.50.7", False), ("3.51.2", True), ("3.51.3", False),
     ("3.52.0", False)],
)  # fmt: skip
def test_the_wal_reset_bug(version: str, bad: bool) -> None:  # noqa: FBT001 - a fact
    """Versions with the bug are named; in a file with other tables that is a warning."""
    assert affected(version) is bad
    for shared, severity in ((False, NOTE), (True, WARNING)):
        found = given.wrong(given.sqlite(version=version, shared=shared))
        assert worst(found) is (severity if bad else OK)
        assert all("WAL-reset bug" in finding.title for finding in found)


@pytest.mark.parametrize(
    ("changes", "severity", "words"),
    [
        ({"journal": "delete"}, WARNING, "journal mode delete"),
        ({"file_system": "nfs4"}, CRITICAL, "network file system (nfs4)"),
        ({"file_system": None}, OK, ""),
        ({"disk_free": 500 * MIB}, WARNING, "nearly full"),
        ({"disk_free": 50 * MIB}, CRITICAL, "nearly full"),
        ({"writing": 1.0, "writers": (4711,)}, CRITICAL, "Process 4711 has kept the write lock"),
        ({"writing": 1.0}, CRITICAL, "the system does not name"),
        ({"log_size": 300 * MIB, "readers": (8, 9)}, WARNING, "has grown to 300 MB"),
        ({"log_size": 3 * 1024**3}, CRITICAL, "has grown to 3.0 GB"),
        ({"pages": 40_000, "free_pages": 30_000}, NOTE, "free pages"),
        ({"pages": 40_000, "free_pages": 10_000}, OK, ""),
        ({"damage": ()}, OK, ""),
        ({"damage": ("row 3 missing",)}, CRITICAL, "damaged"),
        ({"unseen": {"write": "read-only"}}, WARNING, "write"),
    ],
)
def test_file(changes: dict[str, Any], severity: Severity, words: str) -> None:
    """The file, its disk and its locks."""
    found = given.wrong(given.sqlite(**changes))
    assert worst(found) is severity
    assert all(words in finding.title for finding in found)
