"""Sessions that use Rota's tables and wait for locks, and the sessions that they wait for."""

from rota.doctor.amounts import count, duration
from rota.doctor.finding import Finding, Severity
from rota.store.health import WaitFacts

WAITS, WAITS_LONG = 5.0, 60.0
"""Seconds a session may wait for a lock: warning, critical."""


def judge(waits: tuple[WaitFacts, ...]) -> list[Finding]:
    """One finding for all waits; it names the sessions in front that do not wait themselves."""
    late = [wait for wait in waits if (wait.seconds or 0) >= WAITS]
    if not late:
        return [Finding(Severity.OK, "waits", "No session waits long for a lock on Rota's tables")]
    longest = max(wait.seconds or 0 for wait in late)
    waiting = {wait.pid for wait in waits}
    first = sorted({pid for wait in late for pid in wait.blockers} - waiting)
    sessions = [pid for pid in first if pid]
    names = [f"session {pid}" for pid in sessions]
    if 0 in first:
        names.append("a prepared transaction")
    behind = ", ".join(
        f"{wait.pid}{f' ({wait.application})' if wait.application else ''}" for wait in late[:4]
    )
    verb = "waits" if len(late) == 1 else "wait"
    return [
        Finding(
            Severity.CRITICAL if longest >= WAITS_LONG else Severity.WARNING,
            "waits",
            f"{count(len(late), 'session')} using Rota's tables {verb} for locks, "
            f"for up to {duration(longest)}",
            f"In front: {', '.join(names) or 'no session any more'}. Waiting: {behind}.",
            f"SELECT pg_terminate_backend({sessions[0]});"
            if sessions
            else "SELECT gid, prepared, owner, database FROM pg_prepared_xacts;",
        )
    ]  # fmt: skip
