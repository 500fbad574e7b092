"""Sessions: who is alive, and what becomes of the jobs of those who are not.

A session's row never changes; its signs of life are appended to `heartbeat`. Rescue locks the row
FOR UPDATE, every claim and every renewal locks it FOR KEY SHARE: a session is either renewed and
claims, or is declared dead, never both. Clocks are the server's alone.
"""

from collections.abc import Sequence

from rota.job import JobId, LeaseId, Renewal, Rescue, SessionId, SessionInfo
from rota.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.origin import anchor
from rota.store.postgres.settle import CANCEL_FORGET, give_back, keys_end, keys_wait
from rota.store.postgres.statements import sql

SESSION_OPEN = sql("session_open")
SESSION_RENEW = sql("session_renew")
SESSION_TAKE = sql("session_take")
SESSION_END_LOCK = sql("session_end_lock")
SESSION_FORGET = sql("session_forget")
RESCUE_LOCK = sql("rescue_lock")
RESCUE_TAKE = sql("rescue_take")
RESCUE_JOBS = sql("rescue_jobs")
WAKE = sql("wake")


@operation(Begin.DURABLE)
def open_session(info: SessionInfo) -> Steps[SessionId]:
    """Register a worker; anchors the logs anew after a restore into another cluster."""
    yield from anchor()
    rows = yield SESSION_OPEN(
        host=info.host, pid=info.pid, queues=list(info.queues), timeout=info.timeout
    )
    return SessionId(rows[0][0])


@operation(Begin.NOTHING)
def renew(session: SessionId) -> Steps[Renewal]:
    """A sign of life."""
    rows = yield SESSION_RENEW(session=session)
    if not rows:
        return Renewal(alive=False)
    return Renewal(alive=True, cancel=frozenset(map(JobId, rows[0][0])))


@operation(Begin.DURABLE)
def close_session(session: SessionId) -> Steps[None]:
    """End a session in order; what it still holds goes back unspent."""
    yield SESSION_END_LOCK(sessions=[session])
    yield from _take_back(session, [])
    yield SESSION_FORGET(sessions=[session])


@operation(Begin.DURABLE)
def release(session: SessionId, held: Sequence[LeaseId]) -> Steps[list[JobId]]:
    """Give the leases back that the session has but does not know of."""
    return (yield from _take_back(session, held))


def _take_back(session: SessionId, held: Sequence[LeaseId]) -> Steps[list[JobId]]:
    rows = yield SESSION_TAKE(session=session, held=list(held))
    jobs = sorted(JobId(job) for row in rows for job in row[0])
    if jobs:
        yield from give_back(jobs)
        yield WAKE()
    return jobs


@operation(Begin.DURABLE)
def rescue() -> Steps[list[Rescue]]:
    """Take the jobs of dead sessions back."""
    silent = yield RESCUE_LOCK()
    if not silent:
        return []
    return (yield from take_over([row[0] for row in silent]))


def take_over(sessions: Sequence[int]) -> Steps[list[Rescue]]:
    """Take over from locked sessions that are still silent."""
    rescues = []
    rows = yield RESCUE_TAKE(sessions=list(sessions))
    for session, worker, jobs in rows:
        available: list[JobId] = []
        ended: list[tuple[JobId, str]] = []
        if jobs:
            came = yield RESCUE_JOBS(jobs=jobs, worker=worker)
            for job, state, _ in came:
                if state == "available":
                    available.append(JobId(job))
                else:
                    ended.append((JobId(job), state))
            keyed = [(JobId(job), state, key) for job, state, key in came if key is not None]
            yield from keys_wait([(job, key) for job, state, key in keyed if state == "available"])
            yield from keys_end([(job, key) for job, state, key in keyed if state != "available"])
        discarded = tuple(sorted(job for job, state in ended if state == State.DISCARDED))
        rescues.append(Rescue(SessionId(session), worker, tuple(sorted(available)), discarded))
        if cancelled := [job for job, state in ended if state == State.CANCELLED]:
            yield CANCEL_FORGET(jobs=cancelled)
    if rescues:
        yield SESSION_FORGET(sessions=[one.session for one in rescues])
    if any(one.available for one in rescues):
        yield WAKE()
    return rescues
