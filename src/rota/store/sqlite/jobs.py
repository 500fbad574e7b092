"""Looking jobs up, by id and by what they are. Jobs past their retention are not seen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import msgspec

from rota.model.job import MANY_KEYS, JobFilter, JobId, JobRecord, Reach
from rota.model.limit_record import LimitRecord
from rota.model.states import FINISHED, State
from rota.store.operation import Begin, Query, Steps, operation
from rota.store.sqlite.rows import job_record
from rota.store.sqlite.statements import json_list, sql
from rota.store.standing import HOLDERS, MOST, Standing

GET = sql("jobs/get")
GET_BRIEF = sql("jobs/get_brief")
COUNT = sql("jobs/count")
LIST_JOBS = sql("jobs/list_jobs")
LIST_SUBJECT = sql("jobs/list_subject")
LIST_AVAILABLE = sql("jobs/list_available")
LIST_SUBJECT_FROM = sql("jobs/list_subject_from")
LIST_WAITING = sql("jobs/list_waiting")
LIST_WAITING_FROM = sql("jobs/list_waiting_from")
WAITING_MANY = sql("jobs/waiting_many")
KEYS_MANY = sql("jobs/keys_many")
LIST_RUNNING = sql("jobs/list_running")
LIST_FINISHED = sql("jobs/list_finished")
LIST_AVAILABLE_FROM = sql("jobs/list_available_from")
REACH = sql("jobs/reach")
REACH_FINISHED = sql("jobs/reach_finished")
NEWEST_AVAILABLE = sql("jobs/newest_available")
STANDING = sql("jobs/standing")

WAITING = {State.SCHEDULED, State.RETRYABLE}

MANY = 10_000
"""Waiting jobs at which bounded listings read all jobs by id: their index says nothing of ids."""

_ids = msgspec.json.Decoder(tuple[JobId, ...]).decode


@operation(Begin.NOTHING)
def get(jobs: Sequence[JobId]) -> Steps[list[JobRecord]]:
    """The jobs with these ids, in the order asked for; unknown ids are left out."""
    rows = yield GET(jobs=json_list(jobs))
    found = {row[0]: job_record(row) for row in rows}
    return [found[job] for job in jobs if job in found]


@operation(Begin.NOTHING)
def list_jobs(wanted: JobFilter) -> Steps[list[JobRecord]]:
    """The newest jobs first, at most `wanted.limit` of them."""
    found: list[JobRecord] = []
    size = wanted.limit
    # What was bounded, and has no index that helps: see `reach`.
    by_ids = wanted.since is not None and (yield from _many(wanted))
    while True:
        ids = [row[0] for row in (yield _listing(wanted, by_ids=by_ids))]
        rows = yield (GET_BRIEF if wanted.brief else GET)(jobs=json_list(ids))
        records = sorted(map(job_record, rows), key=lambda record: record.id, reverse=True)
        # Between the two statements a job may have moved on; then others take its place.
        found += [record for record in records if wanted.state in {None, record.state}]
        missing = size - len(found)
        if len(ids) < wanted.limit or missing <= 0:
            return found
        wanted = replace(wanted, after=ids[-1], limit=missing)


@operation(Begin.READING)
def reach(wanted: JobFilter, most: int) -> Steps[Reach]:
    """Where to look.

    What runs is not found by its id, nor are jobs by their time or their key, where these are few.
    """
    until = JobId(wanted.until)
    if wanted.subject is not None or wanted.state in WAITING:
        if not (yield from _many(wanted)):
            return Reach(until, None)
        rows = yield REACH(until=until, most=most)
        return Reach(until, rows[0][0] if rows else None)
    if wanted.state is State.RUNNING:
        return Reach(until, None)
    if wanted.state is State.AVAILABLE:
        [(newest,)] = yield NEWEST_AVAILABLE(until=until, queue=wanted.queue)
        until = JobId(0) if newest is None else newest
    if wanted.state in FINISHED:
        rows = yield REACH_FINISHED(until=until, most=most, state=wanted.state)
    else:
        rows = yield REACH(until=until, most=most)
    return Reach(until, rows[0][0] if rows else None)


def _many(wanted: JobFilter) -> Steps[bool]:
    """Whether the index by time, or that by unique keys, has too many jobs to look at each."""
    if wanted.subjects is not None:
        first, last = wanted.subjects
        [(many,)] = yield KEYS_MANY(first=first, last=last, most=MANY_KEYS)
    elif wanted.state in WAITING:
        [(many,)] = yield WAITING_MANY(most=MANY)
    else:
        return False
    return bool(many)


@operation(Begin.READING)
def standing(job: JobId) -> Steps[Standing | None]:
    """Where a job stands that does not run."""
    rows = yield STANDING(job=job, most=MOST, holders=HOLDERS)
    if not rows:
        return None
    [(ahead, of_key, knowing, key, running, held, rate, seconds, started, holders)] = rows
    limit = None
    if key is not None:
        limit = LimitRecord(key, running, held, rate, seconds, started, waiting=True)
    return Standing(ahead, bool(of_key), _ids(knowing), limit, _ids(holders))


@operation(Begin.NOTHING)
def count_jobs(wanted: JobFilter) -> Steps[int]:
    """How many such jobs there are."""
    first, last = wanted.subjects or (None, None)
    state = wanted.state and wanted.state.value
    [(jobs,)] = yield COUNT(
        state=state, queue=wanted.queue, task=wanted.task, first=first, last=last
    )
    return int(jobs)


@operation(Begin.READING)
def count_listed(wanted: JobFilter) -> Steps[int]:
    """How many jobs a listing has."""
    by_ids = wanted.since is not None and (yield from _many(wanted))
    return len((yield _listing(wanted, by_ids=by_ids)))


def _listing(wanted: JobFilter, *, by_ids: bool) -> Query:
    """The statement that finds the ids, by the index of the wanted state, or by the ids."""
    params = {
        "queue": wanted.queue,
        "task": wanted.task,
        "size": max(wanted.limit, 0),
        "until": wanted.until,
        "since": wanted.lowest,
        "path": None if wanted.arg is None else _path(wanted.arg.path),
        "value": None if wanted.arg is None else wanted.arg.value,
        "hidden": None if wanted.arg is None else f",{wanted.arg.path[0]},",
    }
    if wanted.subjects is not None:
        first, last = wanted.subjects
        state = wanted.state and wanted.state.value
        listing = LIST_SUBJECT_FROM if by_ids else LIST_SUBJECT
        return listing(**params, state=state, first=first, last=last)
    match wanted.state:
        case None:
            return LIST_JOBS(**params)
        case State.AVAILABLE:
            whole = wanted.since is None and wanted.arg is None
            listing = LIST_AVAILABLE if whole else LIST_AVAILABLE_FROM
            return listing(**params)
        case State.SCHEDULED | State.RETRYABLE:
            listing = LIST_WAITING_FROM if by_ids else LIST_WAITING
            return listing(**params, state=wanted.state.value)
        case State.RUNNING:
            return LIST_RUNNING(**params)
        case State.COMPLETED | State.DISCARDED | State.CANCELLED:
            return LIST_FINISHED(**params, state=wanted.state.value)
    assert_never(wanted.state)


def _path(names: Sequence[str]) -> str:
    """A path in JSON as SQLite writes it; whole numbers count in lists."""
    return "$" + "".join(f"[{name}]" if name.isdecimal() else f'."{name}"' for name in names)
