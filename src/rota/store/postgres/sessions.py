"""Sessions: which are alive, and what becomes of the jobs of dead ones.

A session's row never changes; its signs of life are appended to `heartbeat`. Rescue locks the row
FOR UPDATE, every claim and every renewal locks it FOR KEY SHARE: a session is either renewed and
claims, or is declared dead, never both. Clocks are the server's alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rota.errors import LeaseLost
from rota.model.job import Following, JobId, LeaseId, Renewal, Rescue, SessionId, SessionInfo
from rota.model.queue_settings import NAMES, QueueSettings
from rota.model.states import State
from rota.model.suspects import death_message
from rota.store.following import Follow, following
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.enqueue import append
from rota.store.postgres.jobs import get
from rota.store.postgres.listener import tell_if_waited
from rota.store.postgres.origin import anchor
from rota.store.postgres.queue_settings import read
from rota.store.postgres.settle import CANCEL_FORGET, give_back
from rota.store.postgres.settle_write import died, keys_end, keys_wait
from rota.store.postgres.statements import sql
from rota.store.postgres.timeline import follow

SESSION_OPEN = sql("sessions/session_open")
SESSION_RENEW = sql("sessions/session_renew")
SESSION_LEAVE = sql("sessions/session_leave")
SESSION_END_LOCK = sql("sessions/session_end_lock")
SESSION_FORGET = sql("sessions/session_forget")
RESCUE_LOCK = sql("sessions/rescue_lock")
RESCUE_END = sql("sessions/rescue_end")
RESCUE_TAKE = sql("sessions/rescue_take")
RESCUE_JOBS = sql("sessions/rescue_jobs")
RESCUE_WATCH = sql("sessions/rescue_watch")
LOT_BEGIN = sql("sessions/lot_begin")
KNOW = sql("sessions/know")
WAKE = sql("wake/wake")


@operation(Begin.DURABLE)
def open_session(info: SessionInfo) -> Steps[SessionId]:
    """Register a worker; anchors the logs anew after a restore into another cluster."""
    yield from anchor()
    yield from follow()
    rows = yield SESSION_OPEN(
        host=info.host,
        pid=info.pid,
        queues=list(info.queues),
        timeout=info.timeout,
        tasks=None if info.tasks is None else list(info.tasks),
    )
    return SessionId(rows[0][0])


@operation(Begin.HASTY)
def know(session: SessionId, tasks: Sequence[str]) -> Steps[None]:
    """A session knows other tasks; see `rota.store.protocol.Store.know`."""
    yield KNOW(session=session, tasks=list(tasks))


@operation(Begin.NOTHING)
def renew(session: SessionId) -> Steps[Renewal]:
    """A sign of life."""
    rows = yield SESSION_RENEW(session=session)
    if not rows:
        return Renewal(alive=False)
    [(cancel, queues, sessions, said, clock)] = rows
    serving: dict[str, list[SessionId]] = {}
    for queue, server in zip(queues, sessions, strict=True):
        serving.setdefault(queue, []).append(SessionId(server))
    settings = _settings(said) if said else {}
    return Renewal(True, frozenset(map(JobId, cancel)), serving, settings, clock)


def _settings(said: Sequence[Mapping[str, Any]]) -> dict[str, QueueSettings]:
    # JSON has no infinity: PostgreSQL writes it as text.
    rows = [[row["queue"], *(row[name] for name in NAMES)] for row in said]
    return read(
        [tuple(float(value) if value == "Infinity" else value for value in row) for row in rows]
    )


@operation(Begin.HASTY)
def begin_lot(session: SessionId, jobs: Sequence[JobId]) -> Steps[None]:
    """Write down which suspects the session begins to run."""
    if not (yield LOT_BEGIN(session=session, jobs=list(jobs))):
        raise lost(session)


def lost(session: SessionId) -> LeaseLost:
    """The error of a worker that was declared dead."""
    return LeaseLost(f"session {session} was declared dead; its jobs were taken over")


@operation(Begin.DURABLE)
def close_session(session: SessionId) -> Steps[None]:
    """End a session in order; what it still holds goes back unspent.

    What a transaction has locked stays, and the session with it: a rescue looks after it.
    """
    yield SESSION_END_LOCK(sessions=[session])
    _, left = yield from _take_back(session, [])
    if not left:
        yield SESSION_FORGET(sessions=[session])


@operation(Begin.DURABLE)
def release(session: SessionId, held: Sequence[LeaseId]) -> Steps[list[JobId]]:
    """Give the leases back that the session has but does not know of."""
    jobs, _ = yield from _take_back(session, held)
    return jobs


def _take_back(session: SessionId, held: Sequence[LeaseId]) -> Steps[tuple[list[JobId], bool]]:
    """Give leases back; their jobs, and whether others stay, which a transaction has locked."""
    rows = [jobs for (jobs,) in (yield SESSION_LEAVE(session=session, held=list(held)))]
    jobs = sorted(JobId(job) for taken in rows if taken is not None for job in taken)
    if jobs:
        yield from give_back(jobs)
        yield WAKE()
    return jobs, None in rows


@operation(Begin.DURABLE)
def rescue(
    keep: Mapping[str, float] | None = None, follow: Follow | None = None
) -> Steps[list[Rescue]]:
    """Take the jobs of dead sessions back."""
    silent = [session for (session,) in (yield RESCUE_LOCK())]
    if (yield RESCUE_END(locked=silent)):
        silent = [session for (session,) in (yield RESCUE_LOCK())]
    if not silent:
        return []
    return (yield from take_over(silent, keep or {}, follow))


def take_over(
    sessions: Sequence[int], keep: Mapping[str, float], follow: Follow | None = None
) -> Steps[list[Rescue]]:
    """Take over from locked sessions that are still silent.

    Jobs that had not begun come back as they were; of the others see `rota.model.suspects`. A
    session of which a lease stays, because a transaction has locked it, stays as well. Should its
    worker wake up, the fence keeps it from settling what was taken.
    """
    rescues = []
    ended_sessions: list[int] = []
    rows = yield RESCUE_TAKE(sessions=list(sessions))
    for session, worker, begun, waiting, left in rows:
        if not left:
            ended_sessions.append(session)
        elif not (begun or waiting):
            continue
        # With a lease that stays, others may have begun.
        alone = len(begun) == 1 and not left
        available, ended = yield from _note_death(worker, begun, keep, spent=alone)
        if waiting:
            available += yield from give_back(sorted(map(JobId, waiting)))
        yield from tell_if_waited(job for job, _ in ended)
        discarded = tuple(sorted(job for job, state in ended if state == State.DISCARDED))
        blamed = JobId(begun[0]) if alone else None
        came: Sequence[Following] = ()
        if discarded and follow is not None:
            came = yield from following(follow((yield from get(discarded).steps)), append)
        rescues.append(
            Rescue(
                SessionId(session), worker, tuple(sorted(available)), discarded, blamed, tuple(came)
            )
        )
        if cancelled := [job for job, state in ended if state == State.CANCELLED]:
            yield CANCEL_FORGET(jobs=cancelled)
    if ended_sessions:
        yield SESSION_FORGET(sessions=ended_sessions)
        yield RESCUE_WATCH(sessions=ended_sessions)
    if any(rescue.available for rescue in rescues):
        yield WAKE()
    return rescues


def _note_death(
    worker: str, begun: Sequence[int], keep: Mapping[str, float], *, spent: bool
) -> Steps[tuple[list[JobId], list[tuple[JobId, str]]]]:
    """Note a worker's death in the jobs it had begun: which are available again, and which ended how."""
    if not begun:
        return [], []
    came = yield RESCUE_JOBS(
        jobs=begun,
        message=death_message(worker, len(begun), spent=spent),
        suspects=len(begun),
        spent=int(spent),
        queues=list(keep),
        keeps=list(keep.values()),
    )
    unique = [(JobId(job), state, key) for job, state, key, _ in came if key is not None]
    yield from keys_wait([(job, key) for job, state, key in unique if state == State.AVAILABLE])
    yield from keys_end([(job, key) for job, state, key in unique if state != State.AVAILABLE])
    yield from died([(state, node) for _, state, _, node in came if node is not None])
    available = [JobId(job) for job, state, *_ in came if state == State.AVAILABLE]
    return available, [(JobId(job), state) for job, state, *_ in came if state != State.AVAILABLE]
