"""Clearing the tables that rings have left, some seconds before they are truncated.

TRUNCATE is seen by older snapshots, too. A `pg_dump` takes its snapshot first and locks the tables
after that: what was copied out of a table, or settled, between the two would be missing in the
dump, since its snapshot shows neither the copies nor the rows that are gone. So nothing is copied
and truncated at once. First what still counts in a table is moved, and the totals are written down;
and only what was seen to be clear then, and is clear `REST` seconds later, is truncated. A dump
that began before has its locks by then, or finds what it needs elsewhere.

Known weakness: a dump that waits longer than that for its locks lacks jobs that were handed out
since its snapshot. Notes, and starts under a rate, are copied when their table is truncated: a dump
that begins just then lacks some progress, or lets a limit start a few jobs more.
"""

import time
from typing import NamedTuple

from rota.store.operation import Apart, Begin, Operation, Steps, operation
from rota.store.postgres import rings
from rota.store.postgres.counters import SQUEEZE
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.statements import sql

REST = 5.0
"""Seconds between a table's being clear and its being truncated."""

FILE = sql("rings/file")
TALLY_COUNTED = sql("rings/tally_counted")


class Known(NamedTuple):
    """Since when, by its clock, this process knows a table clear; TRUNCATE gives it a new file."""

    file: int
    since: float


Clear = dict[str, Known]
"""What one process knows of each table."""


def rested(clear: Clear, table: str, clearing: Operation[bool]) -> Steps[bool]:
    """Clear a table; whether it has been clear for so long that it may be truncated."""
    # Asked for before, so that what another worker truncates meanwhile is not taken for what was
    # clear.
    [(file,)] = yield FILE(table=table)
    try:
        [(nothing_counts,)] = yield Apart(clearing)
    except LockTimeout:
        nothing_counts = False
    known, now = clear.pop(table, None), time.monotonic()
    if not nothing_counts:
        return False
    if known is None or known.file != file:
        known = Known(file, now)
    if now - known.since < REST:
        clear[table] = known
        return False
    return True


@operation(Begin.HASTY)
def clear_log(segment: int) -> Steps[bool]:
    """Copy the rows of a segment forward that are leased; whether nothing in it counts any more.

    The rows themselves stay: marks have counted them, and a look for the job finds the row or its
    copy.
    """
    if not (yield from rings.may_empty(rings.LOG_STATE, segment)):
        return False
    [(unclaimed,)] = yield rings.UNCLAIMED(segment=segment)
    if unclaimed:
        return False
    [(leased, size)] = yield rings.LEASED(segment=segment)
    yield SQUEEZE(age=0.0)
    if 0 < leased <= rings.COPY_FORWARD and size <= rings.COPY_FORWARD_SIZE:
        yield rings.COPY_FORWARD_SQL(segment=segment)
    return not leased


@operation(Begin.HASTY)
def clear_slot(ring: str, slot: int) -> Steps[bool]:
    """Move what counts in the table that a ring of two has left; whether nothing counts any more.

    Raises:
        LockTimeout: The table is in use.
    """
    [(mine,)] = yield rings.TURN_LOCK()
    if not mine or any(row[:2] == (ring, slot) and row[3] for row in (yield rings.SLOTS())):
        return False
    yield rings.LOCK_WAIT()
    match ring:
        case "cursor":
            yield rings.KEYED_TURN()
            yield rings.LANES_LOCK()
            return not (yield rings.CURSOR_REPEAT())
        case "lease":
            [(left,)] = yield rings.LEASE_LEFT(slot=slot)
            if left:
                yield rings.LEASE_LOCK[slot]()
                yield rings.LEASE_COPY_FORWARD()
                yield rings.LEASE_DELETE[slot]()
            return not left
        case "memory":
            [(behind,)] = yield rings.MEMORY_COPY_FORWARD()
            return not behind
        case "tally":
            yield SQUEEZE(age=0.0)
            [(counted,)] = yield TALLY_COUNTED(slot=slot)
            return bool(counted)
        case _:  # marks, notes, and starts under a rate
            return True
