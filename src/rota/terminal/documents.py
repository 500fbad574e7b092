"""Jobs, cron entries, limits and deeds as plain data: what commands and the dashboard give to programs."""

from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from rota.cron.entry import CronRecord
from rota.cron.jobs import options_of
from rota.cron.times import due_times
from rota.errors import ConfigError
from rota.model.audit import AuditRecord
from rota.model.job import JobRecord
from rota.model.limit_record import LimitRecord
from rota.model.redaction import REDACTED, redacted_args, shown_args

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
        "scheduled_at": job.scheduled_at,
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
