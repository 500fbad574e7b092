"""Looking at jobs and queues. Nothing here takes a lock."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import msgspec

from rota.model.headers import decoded
from rota.model.job import (
    MANY_KEYS,
    AttemptError,
    JobFilter,
    JobId,
    JobRecord,
    QueueRecord,
    Reach,
)
from rota.model.limit_record import LimitRecord
from rota.model.states import State
from rota.store.operation import Apart, Begin, Rows, Statement, Steps, operation
from rota.store.postgres.counters import MUCH, squeeze_if_allowed
from rota.store.postgres.statements import sql
from rota.store.standing import HOLDERS, MOST, Standing

GET = sql("jobs/get")
QUEUES = sql("queues/queues")
QUEUE_NAMES = sql("queues/queue_names")
COUNT = sql("jobs/count")
LIST_AVAILABLE = sql("jobs/list_available")
LIST_AVAILABLE_FROM = sql("jobs/list_available_from")
LIST_SUBJECT = sql("jobs/list_subject")
KEYS_MANY = sql("jobs/keys_many")
LIST_FINISHED = sql("jobs/list_finished")
LIST_DISCARDED = sql("jobs/list_discarded")
REACH = sql("jobs/reach")
AVAILABLE_BELOW = sql("jobs/available_below")
STANDING = sql("jobs/standing")
LISTS = {
    sql("jobs/list_running"): {State.RUNNING},
    LIST_FINISHED: {State.COMPLETED, State.CANCELLED},
    LIST_DISCARDED: {State.DISCARDED},
    sql("jobs/list_waiting"): {State.SCHEDULED, State.RETRYABLE},
    LIST_AVAILABLE: {State.AVAILABLE},
}
"""In the order of asking, cheapest first: none looks beyond where earlier ones found enough."""

OF_SUBJECT = {
    LIST_SUBJECT: {State.AVAILABLE, State.RUNNING, State.SCHEDULED, State.RETRYABLE},
    LIST_FINISHED: LISTS[LIST_FINISHED],
    LIST_DISCARDED: LISTS[LIST_DISCARDED],
}
"""The same where a unique key is asked for: the job that holds it is found by it."""

COUNT_LISTED = {
    listing: Statement(
        f"count_{listing.name}",
        f"SELECT count(*) FROM (\n{listing.text}\n) AS listed",  # noqa: S608 - of a file of its own
    )
    for listing in (*LISTS, LIST_AVAILABLE_FROM, LIST_SUBJECT)
}
"""What counts the jobs of each listing."""

_errors = msgspec.json.Decoder(tuple[AttemptError, ...])


@operation(Begin.READING)
def get(jobs: Sequence[JobId]) -> Steps[list[JobRecord]]:
    """The jobs with these ids, in the order asked for."""
    rows = yield GET(jobs=list(jobs))
    found = {row[0]: _record(row) for row in rows}
    return [found[job] for job in jobs if job in found]


@operation(Begin.SNAPSHOT)
def list_jobs(wanted: JobFilter) -> Steps[list[JobRecord]]:
    """The newest jobs first. One statement for each group of states, so that it walks one index.

    All in one snapshot: else a job that moves on meanwhile would be there twice, or not at all.
    """
    params = _params(wanted)
    found: list[tuple[Any, ...]] = []
    for listing in (yield from _listings(wanted)):
        if listing is LIST_AVAILABLE:
            found += yield from _available(wanted, params)
        else:
            found += yield listing(**params)
        found.sort(key=itemgetter(0), reverse=True)
        del found[wanted.limit :]
        if found and len(found) == wanted.limit:
            # No older job can be among the newest any more.
            params["since"] = found[-1][0]
    return [_record(row) for row in found]


@operation(Begin.SNAPSHOT)
def count_listed(wanted: JobFilter) -> Steps[int]:
    """How many jobs a listing has, by its statements, which need not read what it shows of jobs."""
    params = _params(wanted)
    found = 0
    for listing in (yield from _listings(wanted)):
        if listing is LIST_AVAILABLE:
            query = COUNT_LISTED[LIST_AVAILABLE_FROM](**params, first_id=wanted.lowest)
        else:
            query = COUNT_LISTED[listing](**params)
        found += (yield query)[0][0]
    return min(found, wanted.limit)


def _listings(wanted: JobFilter) -> Steps[list[Statement]]:
    """The statements that list such jobs."""
    by_keys = wanted.since is None or (yield from _few_keys(wanted))
    listings = OF_SUBJECT if wanted.subject is not None and by_keys else LISTS
    return [
        one for one, states in listings.items() if wanted.state is None or wanted.state in states
    ]


def _params(wanted: JobFilter) -> dict[str, Any]:
    first, last = wanted.subjects or (None, None)
    return {
        "first": first,
        "last": last,
        "state": wanted.state and wanted.state.value,
        "queue": wanted.queue,
        "task": wanted.task,
        "size": wanted.limit,
        "until": wanted.until,
        "since": wanted.lowest,
        "path": None if wanted.arg is None else list(wanted.arg.path),
        "value": None if wanted.arg is None else wanted.arg.value,
        "brief": wanted.brief,
    }


def _available(wanted: JobFilter, params: dict[str, Any]) -> Steps[Rows]:
    """The newest available jobs; further pages walk from where the last one ended.

    The ends of the lanes say how far back the newest ones reach, at the least.
    """
    first = params["since"]
    if wanted.after is None and wanted.since is None:
        rows = yield LIST_AVAILABLE(**params)
        if len(rows) < wanted.limit or not rows:
            return rows
        first = max(first, rows[-1][0])
    return (yield LIST_AVAILABLE_FROM(**params, first_id=first))


@operation(Begin.READING)
def reach(wanted: JobFilter, most: int) -> Steps[Reach]:
    """Where to look. Jobs are found by their unique keys without looking far, where these are few."""
    state = wanted.state
    by_keys = wanted.subject is not None and (yield from _few_keys(wanted))
    [(since,)] = yield REACH(
        until=wanted.until,
        most=most,
        discarded=state in {None, State.DISCARDED},
        finished=state in {None, State.COMPLETED, State.CANCELLED},
        waiting=state in {None, State.SCHEDULED, State.RETRYABLE} and not by_keys,
        available=state in {None, State.AVAILABLE} and not by_keys,
        running=state in {None, State.RUNNING} and not by_keys,
    )
    beyond = (yield from _beyond(wanted, since, most)) if since else None
    return Reach(JobId(wanted.until), since, beyond)


def _beyond(wanted: JobFilter, since: JobId, most: int) -> Steps[JobId | None]:
    """Where available jobs are that wait behind many which were claimed: half a page's reach above them.

    Else a page of them after another would be empty, as long as other queues are busy.
    """
    if wanted != replace(
        JobFilter(State.AVAILABLE), queue=wanted.queue, limit=wanted.limit, after=wanted.after
    ):
        return None
    [(found,)] = yield AVAILABLE_BELOW(queue=wanted.queue, below=since)
    return None if found is None else min(since, JobId(found + most // 2))


def _few_keys(wanted: JobFilter) -> Steps[bool]:
    """Whether the unique keys that are asked for are so few that each of them can be looked at."""
    first, last = wanted.subjects or ("", "")
    if first == last:
        return True
    [(many,)] = yield KEYS_MANY(first=first, last=last, most=MANY_KEYS)
    return not many


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
    return Standing(ahead, of_key, tuple(knowing), limit, tuple(holders))


@operation(Begin.READING)
def count_jobs(wanted: JobFilter) -> Steps[int]:
    """How many such jobs there are."""
    first, last = wanted.subjects or (None, None)
    state = wanted.state and wanted.state.value
    [(jobs,)] = yield COUNT(
        state=state, queue=wanted.queue, task=wanted.task, first=first, last=last
    )
    return int(jobs)


@operation(Begin.NOTHING)
def queues() -> Steps[list[QueueRecord]]:
    """All queues, by name, with their counts."""
    [(answer,)] = yield Apart(totals())
    found: list[QueueRecord] = answer[0]
    recent: int = answer[1]
    if recent >= MUCH:
        yield from squeeze_if_allowed()
    return found


@operation(Begin.READING)
def queue_names() -> Steps[list[str]]:
    """All queues, in no order."""
    return [name for (name,) in (yield QUEUE_NAMES())]


@operation(Begin.READING)
def totals() -> Steps[tuple[list[QueueRecord], int]]:
    """The queues, and how many rows came since they were counted last."""
    paused: dict[str, bool] = {}
    counted: dict[str, dict[str, int]] = {}
    recent = 0
    for queue, is_paused, state, jobs, came in (yield QUEUES()):
        if state is None:
            paused[queue] = is_paused
        else:
            counted.setdefault(queue, {})[state] = jobs
            recent += came
    records = [_queue(name, paused[name], counted.get(name, {})) for name in sorted(paused)]
    return records, recent


def _queue(name: str, paused: bool, counted: dict[str, int]) -> QueueRecord:  # noqa: FBT001
    appended, claimed = counted.pop("appended", 0), counted.pop("claimed", 0)
    counted["available"] = appended - claimed - counted.pop("removed", 0)
    counts = {State(state): jobs for state, jobs in counted.items() if jobs}
    return QueueRecord(name, paused, counts, appended, claimed)


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
        unique_key,
        iteration,
        last_run,
        headers,
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
        unique_key=unique_key,
        iteration=iteration or 0,
        last_run=last_run,
        headers=decoded(headers),
    )
