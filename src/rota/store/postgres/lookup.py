"""Looking at jobs and queues. Nothing here takes a lock."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.job import AttemptError, JobFilter, JobId, JobRecord, QueueRecord
from rota.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.statements import sql

GET = sql("get")
QUEUES = sql("queues")
LISTS = {
    sql("list_available"): {State.AVAILABLE},
    sql("list_running"): {State.RUNNING},
    sql("list_waiting"): {State.SCHEDULED, State.RETRYABLE},
    sql("list_finished"): {State.COMPLETED, State.DISCARDED, State.CANCELLED},
}

_errors = msgspec.json.Decoder(tuple[AttemptError, ...])


@operation(Begin.READING)
def get(jobs: Sequence[JobId]) -> Steps[list[JobRecord]]:
    """The jobs with these ids, in the order asked for."""
    rows = yield GET(jobs=list(jobs))
    found = {row[0]: _record(row) for row in rows}
    return [found[job] for job in jobs if job in found]


@operation(Begin.READING)
def list_jobs(wanted: JobFilter) -> Steps[list[JobRecord]]:
    """The newest jobs first. One statement per kind of place, so that each walks one index."""
    params = {
        "state": wanted.state and wanted.state.value,
        "queue": wanted.queue,
        "task": wanted.task,
        "size": wanted.limit,
    }
    records = []
    for listing, states in LISTS.items():
        if wanted.state is None or wanted.state in states:
            records += [_record(row) for row in (yield listing(**params))]
    records.sort(key=lambda record: record.id, reverse=True)
    return records[: wanted.limit]


@operation(Begin.READING)
def queues() -> Steps[list[QueueRecord]]:
    """All queues, by name, with their counts."""
    found: dict[str, tuple[bool, dict[State, int]]] = {}
    for name, paused, state, count in (yield QUEUES()):
        counts = found.setdefault(name, (paused, {}))[1]
        if state is not None:
            counts[State(state)] = count
    return [QueueRecord(name, paused, counts) for name, (paused, counts) in found.items()]


def _record(row: Sequence[Any]) -> JobRecord:
    (
        job,
        task,
        args,
        queue,
        priority,
        state,
        attempt,
        max_attempts,
        timeout,
        enqueued_at,
        scheduled_at,
        finished_at,
        result,
        errors,
        worker,
        unwanted,
    ) = row
    return JobRecord(
        id=JobId(job),
        task=task,
        args=args,
        queue=queue,
        priority=priority,
        state=State(state),
        attempt=attempt,
        max_attempts=max_attempts,
        timeout=timeout,
        enqueued_at=enqueued_at,
        scheduled_at=scheduled_at,
        finished_at=finished_at,
        result=result,
        errors=_errors.decode(errors) if errors else (),
        worker=worker,
        cancel_requested=unwanted,
    )
