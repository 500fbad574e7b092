"""The line about the oldest transaction."""

import pytest

from rota.doctor.finding import Severity
from rota.top.horizon import notice, oldest
from tests.top.made import holder, horizon

GIB = 1024**3


def test_no_holder() -> None:
    """Without a holder the line says so."""
    assert notice(horizon()) == (Severity.OK, "Oldest transaction: none")


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"seconds": 59.0}, Severity.OK),
        ({"seconds": 60.0}, Severity.NOTE),
        ({"seconds": 600.0}, Severity.WARNING),
        ({"seconds": 86400.0}, Severity.CRITICAL),
        ({"age": 1_000_000}, Severity.WARNING),
        ({"age": 200_000_000}, Severity.CRITICAL),
        ({"seconds": None, "age": None}, Severity.OK),
    ],
)
def test_severity(changes: dict[str, float], severity: Severity) -> None:
    """The older, the worse; as `rota doctor` has it."""
    assert notice(horizon(holder(**changes))).severity == severity


def test_words() -> None:
    """The line has the holder, since when, and the cost."""
    said = notice(horizon(holder(seconds=750.0))).text
    assert said == (
        "Oldest transaction: 12 min 30 s, pid 4711, report (psql), idle in transaction, "
        "12 transactions since"
    )
    prepared = holder(kind="prepared", pid=None, name="order 7", state="prepared")
    assert "prepared transaction order 7 of report" in notice(horizon(prepared)).text
    slot = holder(kind="slot", name="old", seconds=None, state="physical")
    assert "Oldest transaction: replication slot old, 12 tr" in notice(horizon(slot)).text
    assert "standby, pid 4711" in notice(horizon(holder(kind="standby"))).text


def test_what_may_not_be_seen() -> None:
    """A role that does not see all sessions learns which right it lacks."""
    assert "2 sessions of other roles not seen" in notice(horizon(hidden=2)).text
    assert "GRANT pg_read_all_stats" in notice(horizon(holder(), hidden=2)).text


def test_the_oldest() -> None:
    """The holder that holds back the most; among equals, the longest open."""
    short = holder(pid=1, seconds=5.0, age=900)
    idle = holder(pid=2, seconds=500.0, age=3)
    longer = holder(pid=3, seconds=6.0, age=900)
    nothing = holder(pid=4, seconds=9000.0, age=None)
    assert oldest(horizon(short, idle, longer, nothing)) == longer
    assert oldest(horizon(nothing)) == nothing
    assert oldest(horizon()) is None


@pytest.mark.parametrize(
    ("size", "severity", "text"),
    [(0, Severity.OK, "0 bytes"), (GIB, Severity.WARNING, "1.0 GB"),
     (3 * GIB, Severity.CRITICAL, "3.0 GB")],
)  # fmt: skip
def test_the_log_of_a_file(size: int, severity: Severity, text: str) -> None:
    """On SQLite it is the write-ahead log that grows."""
    assert notice(horizon(log_size=size)) == (severity, f"Write-ahead log: {text}")
