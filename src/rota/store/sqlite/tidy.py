"""Housekeeping: removing what is past its retention, in batches short enough for waiting writers.

`tidy` has no transaction of its own; each batch is an operation `Apart`, hence a short one.
"""

from rota.store.operation import Apart, Begin, Statement, Steps, operation
from rota.store.sqlite.statements import json_list, sql

PRUNE_JOBS = sql("tidy/prune_jobs")
PRUNE_SESSIONS = sql("tidy/prune_sessions")
UNIQUE_PRUNE = sql("tidy/unique_prune")
PRUNE_COUNTS = sql("tidy/prune_counts")
NOTE_DELETE = sql("notes/note_delete")
NOTE_SWEEP = sql("tidy/note_sweep")
MEMORY_DELETE = sql("memory/memory_delete")
MEMORY_SWEEP = sql("tidy/memory_sweep")
CHECKPOINT = sql("tidy/checkpoint")
FLOWS_DUE = sql("tidy/flows_due")
PRUNE_FLOWS = tuple(
    sql(name)
    for name in (
        "tidy/prune_flow_results",
        "tidy/prune_flow_edges",
        "tidy/prune_flow_arrivals",
        "tidy/prune_flow_facts",
        "tidy/prune_flow_nodes",
        "tidy/prune_flow_ends",
        "tidy/prune_flow_stops",
        "tidy/prune_flows",
    )
)
"""The nodes go last of what is found by them."""

BATCH = 1_000
"""The most rows that one transaction removes."""

FLOWS_BATCH = 20
"""The most flows that one transaction removes."""

BATCHES = 100
"""The most transactions that one round makes for each kind of row; the next round goes on."""


@operation(Begin.NOTHING)
def tidy() -> Steps[list[str]]:
    """One round of housekeeping; what was done, one sentence each."""
    done = []
    for what, statement in (
        ("jobs past their retention", PRUNE_JOBS),
        ("sessions that ended long ago", PRUNE_SESSIONS),
        ("notes of jobs that are gone", NOTE_SWEEP),
        ("steps of jobs that are gone", MEMORY_SWEEP),
        ("unique keys past their period", UNIQUE_PRUNE),
    ):
        removed = 0
        for _ in range(BATCHES):
            [(count,)] = yield Apart(prune(statement))
            removed += count
            if count < BATCH:
                break
        if removed:
            done.append(f"removed {removed} {what}")
    removed = 0
    for _ in range(BATCHES):
        [(count,)] = yield Apart(prune_flows())
        removed += count
        if count < FLOWS_BATCH:
            break
    if removed:
        done.append(f"removed {removed} flows past their retention")
    yield CHECKPOINT()
    return done


@operation(Begin.HASTY)
def prune(statement: Statement) -> Steps[int]:
    """Remove one batch; how many rows it had."""
    rows = yield statement(size=BATCH)
    if rows and statement is PRUNE_JOBS:
        gone = json_list([row[0] for row in rows])
        yield NOTE_DELETE(jobs=gone)
        yield MEMORY_DELETE(jobs=gone)
        yield PRUNE_COUNTS()
    return len(rows)


@operation(Begin.HASTY)
def prune_flows() -> Steps[int]:
    """Remove a batch of flows whose retention is over; how many."""
    flows = [flow for (flow,) in (yield FLOWS_DUE(size=FLOWS_BATCH))]
    if flows:
        for statement in PRUNE_FLOWS:
            yield statement(flows=json_list(flows))
    return len(flows)
