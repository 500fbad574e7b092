"""Who waits for locks while using Rota's tables, and who is in front."""

from rota.doctor.amounts import count, duration
from rota.doctor.finding import Finding, Severity
from rota.store.health import WaitFacts

WAITS, WAITS_LONG = 5.0, 60.0
"""Seconds somebody may wait for a lock: warning, critical."""


def judge(waits: tuple[WaitFacts, ...]) -> list[Finding]:
    """One finding for all who wait; it names those who themselves wait for nobody."""
    late = [one for one in waits if (one.seconds or 0) >= WAITS]
    if not late:
        return [Finding(Severity.OK, "waits", "Nobody waits for long for a lock on Rota's tables")]
    longest = max(one.seconds or 0 for one in late)
    waiting = {one.pid for one in waits}
    first = sorted({pid for one in late for pid in one.blockers} - waiting)
    sessions = [pid for pid in first if pid]
    names = [f"session {pid}" for pid in sessions]
    if 0 in first:
        names.append("a prepared transaction")
    who = ", ".join(
        f"{one.pid}{f' ({one.application})' if one.application else ''}" for one in late[:4]
    )
    verb = "waits" if len(late) == 1 else "wait"
    return [
        Finding(
            Severity.CRITICAL if longest >= WAITS_LONG else Severity.WARNING,
            "waits",
            f"{count(len(late), 'session')} using Rota's tables {verb} for locks, "
            f"for up to {duration(longest)}",
            f"In front: {', '.join(names) or 'nobody any more'}. Waiting: {who}.",
            f"SELECT pg_terminate_backend({sessions[0]});"
            if sessions
            else "SELECT gid, prepared, owner, database FROM pg_prepared_xacts;",
        )
    ]  # fmt: skip
