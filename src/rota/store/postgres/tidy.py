"""One round of housekeeping: the rings turn, and what is kept no longer is removed.

Discarded jobs lie outside of the ring of finished jobs, since most of them stay. Those with a
retention are deleted when it is over, in small batches.

Behind a truncation that waits for its lock all claims wait. So no lock is asked for on a table that
some transaction keeps: a round looks at the locks a few times, and a transaction that is there each
time is not about to go. A `pg_dump` delays no claim, however long it takes and however many workers
there are.

Under an old snapshot what was deleted stays in the indexes, so a deletion that began at their left
end would walk a day's dead rows. Each goes on where the last one ended; sequences say where that
was. What comes later and belongs before that place (a transaction of an hour, a crash that undoes a
round) stays: some rows that nothing reads.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rota.store.operation import Apart, Begin, Operation, Steps, operation
from rota.store.postgres import rings
from rota.store.postgres.clearing import Clear, clear_log, clear_slot, rested
from rota.store.postgres.control import cancel_steps
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.long_kept import free_finished
from rota.store.postgres.settle import CANCEL_FORGET
from rota.store.postgres.statements import sql

PRUNE_BATCH = 500
"""Discarded jobs past their retention that one transaction removes."""

FLOWS_BATCH = 20
"""Flows past their retention that one transaction removes, after their results."""

RESULTS_BATCH = 5000
"""Results of such flows that one transaction removes."""

PRUNE_BATCHES = 20
"""Such transactions in one round; the next round goes on."""

LOOKS = 5
"""How often a round looks at the locks of tables it would empty, a twentieth of a second apart."""

RESTORED = sql("tidy/restored")
LOCK_WAIT = sql("tidy/lock_wait")
HOLDERS = sql("tidy/holders")
PAUSE = sql("tidy/pause")
HEARTBEAT_TRIM = sql("tidy/heartbeat_trim")
KEY_TRIM = sql("tidy/key_trim")
CANCEL_LEFT = sql("tidy/cancel_left")
PRUNE_DISCARDED = sql("tidy/prune_discarded")
DISCARDED_PRUNED = sql("tidy/discarded_pruned")
FLOWS_DUE = sql("tidy/flows_due")
PRUNE_RESULTS = sql("tidy/prune_results")
PRUNE_FLOWS = sql("tidy/prune_flows")
FLOWS_PRUNED = sql("tidy/flows_pruned")


@operation(Begin.NOTHING)
def tidy(clear: Clear) -> Steps[list[str]]:
    """One round of housekeeping, in short transactions; what was done.

    `clear` is what the rounds of one process tell each other. A worker that was moved with its
    database does nothing before it notices: what it moved would be taken for restored, see
    `rota.store.postgres.origin`.
    """
    if (yield RESTORED())[0][0]:
        return []
    done: list[str] = []
    for part in (rings.turn_log, rings.turn_finished, rings.turn_history):
        [(did,)] = yield Apart(part())
        done += did
    [((did, left),)] = yield Apart(rings.turn_slots())
    done += did
    done += yield from _empty(left, clear)
    yield Apart(trim())
    done += yield from _try(cancel_overtaken())
    done += yield from _prune()
    return done + (yield from _prune_flows())


class Emptying(NamedTuple):
    """How tables left by a ring are emptied; `clear` moves what counts there, some time before."""

    tables: tuple[str, ...]
    empty: Operation[list[str]]
    clear: Operation[bool] | None = None


def _empty(left: Sequence[tuple[str, int]], clear: Clear) -> Steps[list[str]]:
    """Empty what the rings have left, these tables of the small ones included, as far as can be."""
    emptying = [
        Emptying((f"{ring}_{slot}",), rings.empty_slot(ring, slot), clear_slot(ring, slot))
        for ring, slot in left
    ]
    for number, size, current, _ in (yield rings.LOG_STATE()):
        if size and not current:
            emptying.append(
                Emptying((f"log_{number}",), rings.empty_log(number), clear_log(number))
            )
    for number, size, current, _ in (yield rings.FINISHED_STATE()):
        if size and not current:
            of_jobs = (f"finished_{number}", f"finished_note_{number}", f"finished_memory_{number}")
            emptying.append(Emptying(of_jobs, free_finished(number)))
    for number, size, current, _ in (yield rings.HISTORY_STATE()):
        if size and not current and not (yield from rings.recent(number)):
            emptying.append(Emptying((f"history_{number}",), rings.empty_history(number)))
    held = yield from _held([name for one in emptying for name in one.tables])
    done: list[str] = []
    for one in emptying:
        if not held.isdisjoint(one.tables):
            continue
        if one.clear is None or (yield from rested(clear, one.tables[0], one.clear)):
            done += yield from _try(one.empty)
    return done


def _prune() -> Steps[list[str]]:
    removed = 0
    for _ in range(PRUNE_BATCHES):
        [(pruned,)] = yield Apart(prune_discarded())
        removed += pruned
        if pruned < PRUNE_BATCH:
            break
    return [f"removed {removed} discarded job(s) past their retention"] if removed else []


def _prune_flows() -> Steps[list[str]]:
    removed = 0
    for _ in range(PRUNE_BATCHES):
        [((pruned, full),)] = yield Apart(prune_flows())
        removed += pruned
        if not full:
            break
    return [f"removed {removed} flow(s) past their retention"] if removed else []


def _held(tables: Sequence[str]) -> Steps[set[str]]:
    """Those of these tables that a transaction keeps locked, longer than those that come and go."""
    held = set((yield HOLDERS(tables=list(tables)))) if tables else set()
    for _ in range(LOOKS - 1):
        if not held:
            break
        yield PAUSE()
        held.intersection_update((yield HOLDERS(tables=list(tables))))
    return {name for name, _ in held}


def _try(part: Operation[list[str]]) -> Steps[list[str]]:
    try:
        [(did,)] = yield Apart(part)
    except LockTimeout:
        return []
    done: list[str] = did
    return done


@operation(Begin.HASTY)
def trim() -> Steps[None]:
    """Forget old signs of life, and unique keys whose period is over."""
    yield HEARTBEAT_TRIM()
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
    if removed < PRUNE_BATCH:
        yield DISCARDED_PRUNED()
    return int(removed)


@operation(Begin.HASTY)
def prune_flows() -> Steps[tuple[int, bool]]:
    """Remove a batch of flows whose retention is over; how many, and whether there are more."""
    flows = [flow for (flow,) in (yield FLOWS_DUE(size=FLOWS_BATCH))]
    if not flows:
        yield FLOWS_PRUNED()
        return 0, False
    [(results,)] = yield PRUNE_RESULTS(flows=flows, size=RESULTS_BATCH)
    if results == RESULTS_BATCH:
        return 0, True
    yield PRUNE_FLOWS(flows=flows)
    return len(flows), True
