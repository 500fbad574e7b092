"""What `rota doctor` makes of the finished jobs' space."""

from typing import Any

from rota.doctor.examine import judge
from rota.doctor.finding import Severity
from tests.doctor import facts as given

MIB = 1024**2


def finished(kept: float | None, **changes: Any) -> Any:
    """Finished jobs of which so much is within its retention."""
    left = [given.table(f"finished_{n}", total=200 * MIB, kept=kept) for n in range(1, 6)]
    current = given.table("finished_0", size=MIB, total=100 * MIB)
    return given.postgres(**{"tables": (current, *left)} | changes)


def test_finished_jobs_that_have_expired() -> None:
    """It is said how much of them still takes space; if it is most, also why."""
    found = given.only(finished(0.01))
    assert (found.severity, found.title) == (
        Severity.NOTE, "Most of rota.finished is past its retention: 990 MB of 1.1 GB"
    )  # fmt: skip
    assert "piece by piece" in found.detail
    locked = given.only(
        finished(0.01, holders=(given.holder(seconds=1.0, touches=("finished_3",)),))
    )
    assert locked.severity is Severity.WARNING
    assert "Session 4711 has locked finished_3" in locked.detail
    [*_, alone] = [f for f in given.wrong(finished(0.01, work=given.work(sessions=())))
                   if f.subject == "space"]  # fmt: skip
    assert "none is alive" in alone.detail
    for kept, told in ((0.5, " (500 MB past its retention)"), (1.0, ""), (None, "")):
        assert given.wrong(finished(kept)) == []
        [fine] = [f for f in judge(finished(kept), hears=True) if f.subject == "space"]
        assert fine.title == f"Housekeeping frees space in time: finished 1.1 GB{told}"
