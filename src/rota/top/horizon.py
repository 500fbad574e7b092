"""The holder of the oldest snapshot, or the size of SQLite's log, in one line."""

from typing import NamedTuple

from rota.doctor.amounts import count, duration, size
from rota.doctor.file import LOG_LARGE, LOG_VERY_LARGE
from rota.doctor.finding import Severity
from rota.doctor.horizon import OLD, OPEN_LONG, OPEN_SOME_TIME, OPEN_VERY_LONG, VERY_OLD
from rota.store.health import HolderFacts, HorizonFacts


class Notice(NamedTuple):
    """A line and its severity."""

    severity: Severity
    text: str


def notice(horizon: HorizonFacts) -> Notice:
    """The line about old rows."""
    if horizon.log_size is not None:
        return Notice(_log_severity(horizon.log_size), f"Write-ahead log: {size(horizon.log_size)}")
    unseen = (
        f" ({count(horizon.hidden, 'session')} of other roles not seen: GRANT pg_read_all_stats)"
        if horizon.hidden
        else ""
    )
    holder = oldest(horizon)
    if holder is None:
        return Notice(Severity.OK, f"Oldest transaction: none{unseen}")
    return Notice(_severity(holder), f"Oldest transaction: {_described(holder)}{unseen}")


def oldest(horizon: HorizonFacts) -> HolderFacts | None:
    """The holder that holds back the most, or else has been open for the longest time."""
    return max(
        horizon.holders,
        key=lambda holder: (holder.age if holder.age is not None else -1, holder.seconds or 0.0),
        default=None,
    )


def _severity(holder: HolderFacts) -> Severity:
    seconds, age = holder.seconds or 0.0, holder.age or 0
    if seconds >= OPEN_VERY_LONG or age >= VERY_OLD:
        return Severity.CRITICAL
    if seconds >= OPEN_LONG or age >= OLD:
        return Severity.WARNING
    return Severity.NOTE if seconds >= OPEN_SOME_TIME else Severity.OK


def _log_severity(log_size: int) -> Severity:
    if log_size >= LOG_VERY_LARGE:
        return Severity.CRITICAL
    return Severity.WARNING if log_size >= LOG_LARGE else Severity.OK


def _described(holder: HolderFacts) -> str:
    parts = [duration(holder.seconds)] if holder.seconds is not None else []
    match holder.kind:
        case "session" | "standby":
            name = f" ({holder.name})" if holder.name else ""
            kind = "standby, " if holder.kind == "standby" else ""
            parts.append(f"{kind}pid {holder.pid}, {holder.role or 'no role'}{name}")
        case "prepared":
            parts.append(f"prepared transaction {holder.name} of {holder.role}")
        case "slot":
            parts.append(f"replication slot {holder.name}")
    if holder.state and holder.kind == "session":
        parts.append(holder.state)
    if holder.age:
        parts.append(f"{count(holder.age, 'transaction')} since")
    return ", ".join(parts)
