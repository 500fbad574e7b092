"""Jobs, flows, cron entries, limits and deeds as plain data.

This is what commands and the dashboard give to programs.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from rota.cron.entry import CronRecord
from rota.cron.jobs import options_of
from rota.cron.times import due_times
from rota.errors import ConfigError
from rota.model.audit import AuditRecord
from rota.model.flow import FlowGraph, FlowRecord, Membership, NodeRecord
from rota.model.job import JobRecord
from rota.model.limit_record import LimitRecord
from rota.model.memory import StepRecord, due
from rota.model.redaction import REDACTED, redacted_args, shown_args

COUNTED_NODES = 1000
"""Up to how many nodes of a flow are counted where its nodes are not read."""

# Jobs -----------------------------------------------------------------------------------------


def summary(job: JobRecord) -> dict[str, Any]:
    """A job in a list, for programs."""
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state.value,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "timeout": job.timeout,
        "enqueued_at": job.enqueued_at,
        "scheduled_at": due(job),
        "finished_at": job.finished_at,
        "worker": job.worker,
        "cancel_requested": job.cancel_requested,
        "unique_key": job.unique_key,
        "iteration": job.iteration,
        "last_run": job.last_run,
        "error": f"{job.errors[-1].exception}: {job.errors[-1].message}" if job.errors else None,
    }


def details(job: JobRecord) -> dict[str, Any]:
    """Everything about a job, for programs."""
    fields = outcome(job)
    del fields["error"]
    return fields | {
        "headers": {name: text for name, text in job.headers.items() if name != REDACTED},
        "args": msgspec.Raw(shown_args(job).encode()),
        "log": list(job.log),
    }


def outcome(job: JobRecord) -> dict[str, Any]:
    """A job's progress, result and errors, for programs; without its args and its log."""
    return summary(job) | {
        "progress": job.progress,
        "result": None if job.result is None else msgspec.Raw(job.result.encode()),
        "errors": list(job.errors),
    }


def steps(records: Iterable[StepRecord]) -> dict[str, Any]:
    """What a job remembers, for programs."""
    return {
        "steps": [
            {
                "kind": step.kind,
                "name": step.name,
                "state": step.state,
                "at": step.at,
                "until": step.until,
                "result": None if step.result is None else msgspec.Raw(step.result.encode()),
            }
            for step in records
        ]
    }


# Cron entries ---------------------------------------------------------------------------------


def entry_details(record: CronRecord, count: int) -> dict[str, Any]:
    """An entry as JSON."""
    entry, options = record.entry, options_of(record.entry)
    return {
        "name": entry.name,
        "expression": entry.expression,
        "timezone": entry.timezone,
        "missed": entry.missed.value,
        "jitter": entry.jitter,
        "task": entry.task,
        "args": msgspec.Raw(redacted_args(entry.args, options.redact).encode()),
        "due": entry.due,
        "queue": entry.queue,
        "priority": entry.priority,
        "options": None if entry.options is None else msgspec.Raw(entry.options.encode()),
        "paused": record.paused,
        "declared": record.declared,
        "undeclared": record.undeclared,
        "next": coming(record, count),
        "last": record.last,
    }


def state(record: CronRecord) -> str:
    """In a word, why an entry makes no jobs; empty if it does."""
    if record.paused:
        return "paused"
    return "undeclared" if record.undeclared else ""


def coming(record: CronRecord, count: int) -> list[datetime]:
    """An entry's next due times; none where it makes no jobs."""
    if state(record) or record.due is None:
        return []
    try:
        more = due_times(record.entry.expression, record.entry.timezone, record.due)
        return [record.due, *islice(more, count - 1)]
    except ConfigError:
        return [record.due]


# Limits ---------------------------------------------------------------------------------------


def deed_document(deed: AuditRecord) -> dict[str, Any]:
    """A deed, for programs."""
    return {
        "id": deed.id,
        "at": deed.at,
        "who": deed.who,
        "action": deed.action,
        "what": dict(deed.what),
        "changed": deed.changed,
        "job": deed.job,
    }


def limit_document(limit: LimitRecord) -> dict[str, Any]:
    """A limit, for programs."""
    return {
        "key": limit.key,
        "running": limit.running,
        "held": limit.held,
        "rate": limit.rate,
        "seconds": limit.seconds,
        "started": limit.started,
        "waiting": limit.waiting,
        "full": limit.full,
    }


# Flows ----------------------------------------------------------------------------------------


def flow_summary(flow: FlowRecord) -> dict[str, Any]:
    """A flow in a list, for programs. `more_nodes`: it has more nodes than were counted."""
    return {
        "id": flow.id,
        "name": flow.name,
        "state": flow.state.value,
        "created_at": flow.created_at,
        "deadline": flow.deadline,
        "ended_at": flow.ended_at,
        "reason": flow.reason,
        "stopping": flow.stopping,
        "round": flow.round,
        "nodes": min(flow.nodes, COUNTED_NODES),
        "more_nodes": flow.nodes > COUNTED_NODES,
    }


def node_document(node: NodeRecord) -> dict[str, Any]:
    """A node, for programs."""
    return {
        "id": node.id,
        "name": node.name,
        "task": node.task,
        "state": node.state.value,
        "map": node.many,
        "jobs": node.expects,
        "completed": node.completed,
        "failed": node.failed,
        "cancelled": node.cancelled,
        "left": node.left,
        "first_job": node.first_job,
        "last_job": node.last_job,
        "released_at": node.released_at,
        "ended_at": node.ended_at,
        "round": node.round,
        "reason": node.reason,
    }


def membership(flow: Membership | None) -> dict[str, Any]:
    """The flow that a job belongs to, for programs."""
    found = None if flow is None else {"id": flow.flow, "name": flow.flow_name, "node": flow.node}
    return {"flow": found}


def flow_graph(graph: FlowGraph) -> dict[str, Any]:
    """A flow with its nodes and what these await, for programs. `more`: there are further nodes."""
    names = {node.id: node.name for node in graph.nodes}
    return {
        "flow": flow_summary(graph.flow),
        "nodes": [node_document(node) for node in graph.nodes],
        "edges": [
            {"node": names[edge.node], "after": names[edge.after], "on": edge.condition.value}
            for edge in graph.edges
            if edge.node in names and edge.after in names
        ],
        "more": graph.more,
    }
