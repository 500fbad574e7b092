"""The rings: where new rows go, and how used-up segments become empty again.

    ┌─▶ log_0 ─▶ log_1 ─▶ log_2 ─▶ log_3 ─┐      new rows go to the current segment;
    └──────────────◀──────────────────────┘      the next one must be empty before it is current

A segment is emptied by TRUNCATE, which gives the space back even while an old snapshot is held;
vacuum cannot do that. It is emptied only when every row has been handed out and is not leased any
more, which is checked again under the segment's exclusive lock. A few leased rows do not pin a
segment: they are copied forward and keep their place in log order. If the lock is not free within
50 ms, the ring waits: the current segment grows, and nothing is lost. What is copied is copied some
seconds before, in a transaction of its own (`clearing.py`).

The cursor, the leases, the tally, its marks, the notes, the memory and the starts under a rate have
rings of two tables, which turn the same way. Rows that counters are made of are counted once more
before they are truncated (`counters.py`). The ring of finished jobs turns by age; a segment is
truncated when the retention of all its jobs is over, and the few that are kept longer are moved on
(`long_kept.py`).

Known weakness: a transaction that has touched a segment (a producer that has not committed, a
`pg_dump`) keeps it from being truncated until the transaction ends.
"""

import sys

from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.postgres.counters import SQUEEZE
from rota.store.postgres.layout import (
    CURSOR_SLOTS,
    FINISHED_SEGMENTS,
    HISTORY_SEGMENTS,
    LEASE_SLOTS,
    LIMIT_SLOTS,
    LOG_SEGMENTS,
    MARK_SLOTS,
    MEMORY_SLOTS,
    NOTE_SLOTS,
    TALLY_SLOTS,
)
from rota.store.postgres.notes import BOUNDS
from rota.store.postgres.statements import sql

LOG_SIZE = 32 * 1024 * 1024
"""Bytes from which on the current segment of the log is left, long args included."""

LOG_AGE = 600.0
"""Seconds for which a segment of the log is the current one, if it is not empty."""

LOG_AGE_OF_MANY = 10.0
"""The same where there are so many keys that claims walk only those with rows in the log."""

CURSOR_SIZE = 2 * 1024 * 1024
"""Bytes from which on the current table of the cursor is left: some twenty thousand entries, one for
each lane that gave jobs to a claim."""

CURSOR_SIZE_OF_LANE = 400
"""The same for each plain lane, where these make more: four times what the entry of each takes. A
ring that turned as soon as its entries were copied would never rest.
"""

LEASE_SIZE = 512 * 1024
"""Bytes from which on the current table of the leases is left: dead rows take no more than that."""

TALLY_SIZE = 4 * 1024 * 1024
"""Bytes from which on the current table of the tally is left."""

MARK_SIZE = 1024 * 1024
"""Bytes from which on the current table of the marks of the totals is left: one a second, while there is
work."""

NOTE_SIZE = 16 * 1024 * 1024
"""Bytes from which on the current table of the notes is left."""

MEMORY_SIZE = 16 * 1024 * 1024
"""Bytes at which the memory's current table is left, if they are twice what was copied there."""

LIMIT_SIZE = 1024 * 1024
"""Bytes from which on the current table of what started under a rate is left."""

FINISHED_SIZE = 1024 * 1024 * 1024
"""Bytes from which on the current segment of finished jobs is left, long results included."""

FINISHED_AGE = 6 * 3600.0
"""Seconds for which a segment of finished jobs is the current one: four of them span a day."""

HISTORY_AGE = 2 * 86400.0
"""Seconds for which a segment of the history is the current one: with the one that is emptied, five
of them always have seven days.
"""

COPY_FORWARD = 2000
"""Leased rows that are copied forward at most: a segment with more of them waits."""

COPY_FORWARD_SIZE = 16 * 1024 * 1024
"""Bytes of such rows at most: claims wait while they are copied."""

TURN_LOCK = sql("rings/turn_lock")
LOG_STATE = sql("rings/log_segments")
LOG_TURN = sql("rings/log_turn")
LANE_FEW = sql("rings/lane_few")
FINISHED_STATE = sql("rings/finished_segments")
FINISHED_TURN = sql("rings/finished_turn")
FINISHED_KEPT = sql("rings/finished_kept")
HISTORY_STATE = sql("rings/history_segments")
HISTORY_TURN = sql("rings/history_turn")
HISTORY_KEPT = sql("rings/history_kept")
SLOTS = sql("rings/slots")
PLAIN_LANES = sql("rings/plain_lanes")
CURSOR_TURN = sql("rings/cursor_turn")
LEASE_TURN = sql("rings/lease_turn")
TALLY_TURN = sql("rings/tally_turn")
MARK_TURN = sql("rings/mark_turn")
MARK_PASSED = sql("rings/mark_passed")
NOTE_TURN = sql("rings/note_turn")
LIMIT_TURN = sql("rings/limit_turn")
LIMIT_COPY_FORWARD = sql("rings/limit_copy_forward")
CURSOR_REPEAT = sql("rings/cursor_repeat")
CURSOR_LEAVE = sql("rings/cursor_leave")
LEASE_COPY_FORWARD = sql("rings/lease_copy_forward")
LEASE_LEFT = sql("rings/lease_left")
NOTE_COPY_FORWARD = sql("rings/note_copy_forward")
MEMORY_TURN = sql("rings/memory_turn")
MEMORY_KEPT = sql("rings/memory_kept")
MEMORY_EMPTIED = sql("rings/memory_emptied")
MEMORY_COPY_FORWARD = sql("rings/memory_copy_forward")
LANES_LOCK = sql("rings/lanes_lock")
KEYED_TURN = sql("rings/keyed_turn")
LOCK_WAIT = sql("tidy/lock_wait")
UNCLAIMED = sql("rings/segment_unclaimed")
LEASED = sql("rings/segment_leased")
COPY_FORWARD_SQL = sql("rings/segment_copy_forward")


def _each(verb: str, table: str, count: int) -> tuple[Statement, ...]:
    # Names of tables cannot be parameters; these are made of constants of this file alone.
    return tuple(
        Statement(f"{table}_{number}", verb.format(f"rota.{table}_{number}"))
        for number in range(count)
    )


_EXCLUSIVE = "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE"
LOG_LOCK = _each(_EXCLUSIVE, "log", LOG_SEGMENTS)
LOG_TRUNCATE = _each("TRUNCATE {}", "log", LOG_SEGMENTS)
CURSOR_LOCK = _each(_EXCLUSIVE, "cursor", CURSOR_SLOTS)
CURSOR_TRUNCATE = _each("TRUNCATE {}", "cursor", CURSOR_SLOTS)
LEASE_LOCK = _each(_EXCLUSIVE, "lease", LEASE_SLOTS)
LEASE_DELETE = _each("DELETE FROM {}", "lease", LEASE_SLOTS)
LEASE_TRUNCATE = _each("TRUNCATE {}", "lease", LEASE_SLOTS)
TALLY_LOCK = _each(_EXCLUSIVE, "tally", TALLY_SLOTS)
TALLY_TRUNCATE = _each("TRUNCATE {}", "tally", TALLY_SLOTS)
MARK_LOCK = _each(_EXCLUSIVE, "tally_mark", MARK_SLOTS)
MARK_TRUNCATE = _each("TRUNCATE {}", "tally_mark", MARK_SLOTS)
NOTE_LOCK = _each(_EXCLUSIVE, "note", NOTE_SLOTS)
NOTE_TRUNCATE = _each("TRUNCATE {}", "note", NOTE_SLOTS)
MEMORY_LOCK = _each(_EXCLUSIVE, "memory", MEMORY_SLOTS)
MEMORY_TRUNCATE = _each("TRUNCATE {}", "memory", MEMORY_SLOTS)
LIMIT_LOCK = _each(_EXCLUSIVE, "limit_start", LIMIT_SLOTS)
LIMIT_TRUNCATE = _each("TRUNCATE {}", "limit_start", LIMIT_SLOTS)
FINISHED_LOCK = _each(_EXCLUSIVE, "finished", FINISHED_SEGMENTS)
FINISHED_TRUNCATE = _each("TRUNCATE {}", "finished", FINISHED_SEGMENTS)
FINISHED_NOTE_TRUNCATE = _each("TRUNCATE {}", "finished_note", FINISHED_SEGMENTS)
FINISHED_MEMORY_TRUNCATE = _each("TRUNCATE {}", "finished_memory", FINISHED_SEGMENTS)
HISTORY_LOCK = _each(_EXCLUSIVE, "history", HISTORY_SEGMENTS)
HISTORY_TRUNCATE = _each("TRUNCATE {}", "history", HISTORY_SEGMENTS)


@operation(Begin.HASTY)
def turn_log() -> Steps[list[str]]:
    """Move the log on to its next segment, if the current one is large or old."""
    [(few,)] = yield LANE_FEW()
    oldest = LOG_AGE if few else LOG_AGE_OF_MANY
    return (yield from _turn(LOG_STATE, LOG_TURN, LOG_SIZE, oldest, "log"))


@operation(Begin.HASTY)
def turn_finished() -> Steps[list[str]]:
    """Move the ring of finished jobs on, if its current segment is large or old."""
    return (
        yield from _turn(FINISHED_STATE, FINISHED_TURN, FINISHED_SIZE, FINISHED_AGE, "finished")
    )


@operation(Begin.HASTY)
def turn_history() -> Steps[list[str]]:
    """Move the history on, if its current segment is old; its size does not matter."""
    return (yield from _turn(HISTORY_STATE, HISTORY_TURN, sys.maxsize, HISTORY_AGE, "history"))


def _turn(
    state: Statement, turn: Statement, largest: int, oldest: float, ring: str
) -> Steps[list[str]]:
    [(mine,)] = yield TURN_LOCK()
    if not mine:
        return []
    segments = list((yield state()))
    current = next(number for number, _, is_current, _ in segments if is_current)
    _, size, _, seconds = segments[current]
    # The order of the segments means nothing, so one that is still in use is passed by.
    count = len(segments)
    empty = [by for by in range(1, count) if not segments[(current + by) % count][1]]
    if not empty or not (size >= largest or (size and seconds >= oldest)):
        return []
    yield turn(by=empty[0])
    return [f"{ring}: segment {current} is left with {size} bytes"]


@operation(Begin.HASTY)
def turn_slots() -> Steps[tuple[list[str], list[tuple[str, int]]]]:
    """Move the rings of two tables to their other table, where it is empty.

    Gives what was done, and the tables that were left before and are not empty yet.
    """
    [(mine,)] = yield TURN_LOCK()
    if not mine:
        return [], []
    slots = {(ring, current): (slot, size) for ring, slot, size, current in (yield SLOTS())}
    done: list[str] = []
    left: list[tuple[str, int]] = []
    [(kept,)] = yield MEMORY_KEPT()
    for ring, turn, largest in (
        ("cursor", CURSOR_TURN, CURSOR_SIZE),
        ("lease", LEASE_TURN, LEASE_SIZE),
        ("tally", TALLY_TURN, TALLY_SIZE),
        ("tally_mark", MARK_TURN, MARK_SIZE),
        ("note", NOTE_TURN, NOTE_SIZE),
        ("memory", MEMORY_TURN, max(MEMORY_SIZE, 2 * kept)),
        ("limit_start", LIMIT_TURN, LIMIT_SIZE),
    ):
        current, size = slots[ring, True]
        other, other_size = slots[ring, False]
        if other_size:
            left.append((ring, other))
        elif size >= largest and not (ring == "cursor" and (yield from _lanes_fill(size))):
            yield turn()
            done.append(f"{ring}: table {current} is left with {size} bytes")
    return done, left


def _lanes_fill(size: int) -> Steps[bool]:
    """Whether so many lanes have cursors that a table of this size is not much more than these."""
    [(lanes,)] = yield PLAIN_LANES()
    return bool(size < lanes * CURSOR_SIZE_OF_LANE)


@operation(Begin.HASTY)
def empty_slot(ring: str, slot: int) -> Steps[list[str]]:  # noqa: C901 - one case for each ring
    """Truncate the table that a ring of two tables has left.

    Raises:
        LockTimeout: The table is in use.
    """
    # While this transaction has the turn, no other one makes the table current.
    [(mine,)] = yield TURN_LOCK()
    if not mine or any(row[:2] == (ring, slot) and row[3] for row in (yield SLOTS())):
        return []
    yield LOCK_WAIT()
    match ring:
        case "cursor":
            # The lanes first: a claim that waits for its lane holds no lock on the cursor yet.
            yield KEYED_TURN()
            yield LANES_LOCK()
            yield CURSOR_LOCK[slot]()
            if (yield CURSOR_REPEAT()):
                return []
            yield CURSOR_LEAVE()
            yield CURSOR_TRUNCATE[slot]()
        case "lease":
            yield LEASE_LOCK[slot]()
            [(left,)] = yield LEASE_LEFT(slot=slot)
            if left:
                return []
            yield LEASE_TRUNCATE[slot]()
        case "tally_mark":
            if not (yield from _empty_marks(slot)):
                return []
        case "note":
            yield NOTE_LOCK[slot]()
            yield NOTE_COPY_FORWARD(**BOUNDS)
            yield NOTE_TRUNCATE[slot]()
        case "memory":
            if not (yield from _empty_memory(slot)):
                return []
        case "limit_start":
            yield KEYED_TURN()
            yield LIMIT_LOCK[slot]()
            yield LIMIT_COPY_FORWARD()
            yield LIMIT_TRUNCATE[slot]()
        case _:
            yield TALLY_LOCK[slot]()
            yield SQUEEZE(age=0.0)
            yield TALLY_TRUNCATE[slot]()
    return [f"{ring}: table {slot} is empty again"]


def _empty_memory(slot: int) -> Steps[bool]:
    """What was not copied before is now, and the table is truncated in a later round."""
    yield MEMORY_LOCK[slot]()
    [(behind,)] = yield MEMORY_COPY_FORWARD()
    if behind:
        return False
    yield MEMORY_TRUNCATE[slot]()
    yield MEMORY_EMPTIED()
    return True


def _empty_marks(slot: int) -> Steps[bool]:
    """Nothing is copied: what is in use is a mark in the other table."""
    if not (yield from _passed()):
        return False
    yield MARK_LOCK[slot]()
    if not (yield from _passed()):
        return False
    yield MARK_TRUNCATE[slot]()
    return True


def _passed() -> Steps[bool]:
    [(passed,)] = yield MARK_PASSED()
    return bool(passed)


def may_empty(state: Statement, segment: int) -> Steps[bool]:
    """Take the turn; whether the segment is not the current one."""
    # One transaction at a time: two that have both read a segment would wait for each other's weak
    # locks. And while this one has the turn, no other one can make the segment current: the leased
    # rows would be copied into the segment that is truncated.
    [(mine,)] = yield TURN_LOCK()
    if not mine:
        return False
    segments = yield state()
    return any(number == segment and not current for number, _, current, _ in segments)


@operation(Begin.HASTY)
def empty_log(segment: int) -> Steps[list[str]]:
    """Truncate a segment of the log if all its rows were handed out and settled.

    Raises:
        LockTimeout: The segment is in use.
    """
    if not (yield from may_empty(LOG_STATE, segment)):
        return []
    [(unclaimed,)] = yield UNCLAIMED(segment=segment)
    if unclaimed:
        return []
    # These reads hold the segment's weak lock now; one transaction's own locks do not conflict.
    yield LOCK_WAIT()
    yield LOG_LOCK[segment]()
    [(unclaimed,)] = yield UNCLAIMED(segment=segment)
    [(leased, _)] = yield LEASED(segment=segment)
    if unclaimed or leased:
        return []
    # What came since the newest mark is counted by its rows.
    yield SQUEEZE(age=0.0)
    yield LOG_TRUNCATE[segment]()
    return [f"log: segment {segment} is empty again"]


@operation(Begin.HASTY)
def empty_finished(segment: int) -> Steps[list[str]]:
    """Truncate a segment of finished jobs whose retention was over a moment ago.

    Raises:
        LockTimeout: The segment is in use.
    """
    if not (yield from may_empty(FINISHED_STATE, segment)):
        return []
    yield LOCK_WAIT()
    yield FINISHED_LOCK[segment]()
    [(kept,)] = yield FINISHED_KEPT(segment=segment)
    if kept:
        return []
    yield FINISHED_TRUNCATE[segment]()
    yield FINISHED_NOTE_TRUNCATE[segment]()
    yield FINISHED_MEMORY_TRUNCATE[segment]()
    return [f"finished: segment {segment} is empty again"]


@operation(Begin.HASTY)
def empty_history(segment: int) -> Steps[list[str]]:
    """Truncate a segment of the history whose newest minute is a week old.

    Raises:
        LockTimeout: The segment is in use.
    """
    if not (yield from may_empty(HISTORY_STATE, segment)) or (yield from recent(segment)):
        return []
    yield LOCK_WAIT()
    yield HISTORY_LOCK[segment]()
    if (yield from recent(segment)):
        return []
    yield HISTORY_TRUNCATE[segment]()
    return [f"history: segment {segment} is empty again"]


def recent(segment: int) -> Steps[bool]:
    """Whether a segment of the history has minutes that are still shown."""
    [(kept,)] = yield HISTORY_KEPT(segment=segment)
    return bool(kept)
