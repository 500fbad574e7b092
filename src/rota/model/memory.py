"""What a job remembers across runs: results of steps, when sleeps end, and how waits have ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple

from rota.model.job import JobId, JobRecord, LeaseId, SessionId

MOST_BYTES = 1_000_000
"""The limit of a step's result and of a signal's payload as JSON: a queue is no store for files."""

FOR_EVER = 99 * 365.25 * 86400.0
"""Seconds for which a job waits that waits without a timeout: a timer needs some time."""


def due(job: JobRecord) -> datetime | None:
    """When a job is due; `None` if it waits without an end, or for no time at all.

    It waits without an end for a signal, or for other jobs of its flow.
    """
    at = job.scheduled_at
    return at if at is not None and at - job.enqueued_at < timedelta(seconds=FOR_EVER / 2) else None


class Kind(StrEnum):
    """What a row of memory says."""

    STEP = "step"
    SLEEP = "sleep"
    WAIT = "wait"
    ANSWER = "answer"
    SIGNAL = "signal"


class Holder(NamedTuple):
    """Who may write a job's memory: the session that holds it under this lease."""

    session: SessionId
    lease: LeaseId
    job: JobId


class Remembered(NamedTuple):
    """One row: its kind and name, the signal that it is about, and a value as JSON text.

    `until` is when a sleep ends, or a wait at the latest; `left` are the seconds until then.
    """

    id: int
    kind: Kind
    name: str
    signal: str | None
    value: str | None
    at: datetime
    until: datetime | None
    left: float | None


class Pause(NamedTuple):
    """What a job sleeps or waits for: so many seconds from now, or until a time already known."""

    kind: Kind
    name: str
    seconds: float
    signal: str | None = None
    until: datetime | None = None


class Answer(NamedTuple):
    """Whether a wait has ended, by which signal (none: timeout), and what that brought, as JSON."""

    ended: bool
    signal: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What a job remembers under one name.

    Attributes:
        kind: Whether it is a step, a sleep, a wait for a signal, or a signal that no wait has
            taken.
        name: Its name; a repeated name has its number behind it.
        state: A step is `done`, a sleep `asleep` or `done`, a wait `waiting`, `done` or
            `timed out`, a signal `unread`.
        at: When that was recorded.
        until: When a sleep ends, or a wait at the latest; `None` where it has no end.
        result: What a step returned or a signal brought, as JSON text.
    """

    kind: Literal["step", "sleep", "wait", "signal"]
    name: str
    state: Literal["done", "asleep", "waiting", "timed out", "unread"]
    at: datetime
    until: datetime | None = None
    result: str | None = None


def records(rows: Iterable[Remembered]) -> list[StepRecord]:
    """What these rows of one job say, oldest first."""
    found: dict[tuple[str, str], StepRecord] = {}
    taken = set()
    signals = []
    for row in rows:
        match row.kind:
            case Kind.STEP:
                record = StepRecord("step", row.name, "done", row.at, None, row.value)
            case Kind.SLEEP:
                over = row.left is None or row.left <= 0
                record = StepRecord(
                    "sleep", row.name, "done" if over else "asleep", row.at, row.until
                )
            case Kind.WAIT:
                end = row.until if row.left is not None and row.left < FOR_EVER / 2 else None
                record = StepRecord("wait", row.name, "waiting", row.at, end)
            case Kind.ANSWER:
                taken.add(row.signal)
                how: Literal["done", "timed out"] = "timed out" if row.signal is None else "done"
                record = StepRecord("wait", row.name, how, row.at, None, row.value)
            case _:
                signals.append(row)
                continue
        key = record.kind, record.name
        # A wait that has ended does not wait any more, also where it is written down again that it
        # does.
        if key not in found or found[key].state in {"waiting", "asleep"}:
            found[key] = record
    unread = {row.signal: row for row in reversed(signals) if row.signal not in taken}
    found_signals = [
        StepRecord("signal", row.name, "unread", row.at, None, row.value) for row in unread.values()
    ]
    return sorted([*found.values(), *found_signals], key=lambda record: record.at)
