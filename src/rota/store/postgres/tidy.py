"""One round of housekeeping: the rings turn, and what is kept no longer is removed.

Discarded jobs lie outside of the ring of finished jobs, since most of them stay. Those with a retention
are deleted when it is over, in small batches.
"""

from rota.store.operation import Apart, Begin, Operation, Steps, operation
from rota.store.postgres import rings
from rota.store.postgres.control import cancel_steps
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.settle import CANCEL_FORGET
from rota.store.postgres.statements import sql

PRUNE_BATCH = 500
"""Discarded jobs past their retention that one transaction removes."""

PRUNE_BATCHES = 20
"""Such transactions in one round; the next round goes on."""

LOCK_WAIT = sql("tidy/lock_wait")
HEARTBEAT_TRIM = sql("tidy/heartbeat_trim")
MARK_TRIM = sql("tidy/mark_trim")
CRON_TRIM = sql("tidy/cron_trim")
KEY_TRIM = sql("tidy/key_trim")
CANCEL_LEFT = sql("tidy/cancel_left")
PRUNE_DISCARDED = sql("tidy/prune_discarded")


@operation(Begin.NOTHING)
def tidy() -> Steps[list[str]]:
    """One round of housekeeping, in short transactions; what was done."""
    done: list[str] = []
    for part in (rings.turn_log, rings.turn_finished):
        [(did,)] = yield Apart(part())
        done += did
    [((did, left),)] = yield Apart(rings.turn_slots())
    done += did
    for ring, slot in left:
        done += yield from _try(rings.empty_slot(ring, slot))
    for state, empty in (
        (rings.LOG_STATE, rings.empty_log),
        (rings.FINISHED_STATE, rings.empty_finished),
    ):
        for number, size, current, _ in (yield state()):
            if size and not current:
                done += yield from _try(empty(number))
    yield Apart(trim())
    done += yield from _try(cancel_overtaken())
    removed = 0
    for _ in range(PRUNE_BATCHES):
        [(pruned,)] = yield Apart(prune_discarded())
        removed += pruned
        if pruned < PRUNE_BATCH:
            break
    if removed:
        done.append(f"removed {removed} discarded job(s) past their retention")
    return done


def _try(part: Operation[list[str]]) -> Steps[list[str]]:
    try:
        [(did,)] = yield Apart(part)
    except LockTimeout:
        return []
    done: list[str] = did
    return done


@operation(Begin.HASTY)
def trim() -> Steps[None]:
    """Forget old signs of life and old marks, and unique keys whose period is over."""
    yield HEARTBEAT_TRIM()
    yield MARK_TRIM()
    yield CRON_TRIM()
    yield KEY_TRIM()


@operation(Begin.HASTY)
def cancel_overtaken() -> Steps[list[str]]:
    """Cancel the jobs that left their leases before a request to cancel them was seen.

    Raises:
        LockTimeout: A producer is about to replace one of these jobs.
    """
    yield LOCK_WAIT()
    left = [row[0] for row in (yield CANCEL_LEFT())]
    if not left:
        return []
    states = yield from cancel_steps(left, {})
    yield CANCEL_FORGET(jobs=[job for job in left if job not in states or states[job].finished])
    return [f"cancelled {len(left)} job(s) that had moved on"]


@operation(Begin.HASTY)
def prune_discarded() -> Steps[int]:
    """Remove a batch of discarded jobs whose retention is over, with their notes; how many."""
    [(mine,)] = yield rings.TURN_LOCK()
    if not mine:
        return 0
    [(removed,)] = yield PRUNE_DISCARDED(size=PRUNE_BATCH)
    return int(removed)
