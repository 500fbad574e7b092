"""Workers' sessions: their signs of life, and what happens when they stop.

A session without a sign of life for its timeout is ended by the next rescue. From that moment on it
cannot claim, renew or settle: its row says that it has ended, and its jobs no longer carry its
name. Until then it may renew, however late.

SQLite has one writer at a time, so a transaction that stays open keeps every worker from renewing,
and afterwards all of them look dead. The same holds after the machine has slept, or its clock has
jumped forward: all clocks here are SQLite's, that is the machine's. A rescue therefore notes silent
sessions first, at 0.6 of the timeout, and takes over 0.4 of it later at the earliest: after two
heartbeats, in which a living worker renews. Where workers rescue regularly this delays nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rota.errors import LeaseLost
from rota.model.job import Following, JobId, LeaseId, Renewal, Rescue, SessionId, SessionInfo
from rota.model.states import State
from rota.model.suspects import death_message
from rota.store.following import Follow, following
from rota.store.operation import Begin, Steps, Then, operation
from rota.store.sqlite.control import tell_nodes
from rota.store.sqlite.counters import BUCKET, added
from rota.store.sqlite.enqueue import append
from rota.store.sqlite.enqueue_keyed import moved_on
from rota.store.sqlite.jobs import get
from rota.store.sqlite.queue_settings import QUEUE_SETTINGS, read
from rota.store.sqlite.statements import json_list, sql
from rota.store.sqlite.tasks import known

SESSION_OPEN = sql("sessions/session_open")
KNOW = sql("sessions/know")
SESSION_RENEW = sql("sessions/session_renew")
SESSION_CANCELS = sql("sessions/session_cancels")
SESSION_END = sql("sessions/session_end")
SESSION_RELEASE = sql("sessions/session_release")
RESCUE_NOTICE = sql("sessions/rescue_notice")
RESCUE_SESSIONS = sql("sessions/rescue_sessions")
RESCUE_HELD = sql("sessions/rescue_held")
RESCUE_JOBS = sql("sessions/rescue_jobs")
LOT_BEGIN = sql("sessions/lot_begin")


@operation(Begin.HASTY)
def open_session(info: SessionInfo) -> Steps[SessionId]:
    """Register a worker."""
    rows = yield SESSION_OPEN(
        host=info.host,
        pid=info.pid,
        queues=json_list(info.queues),
        timeout=info.timeout,
        tasks=known(info.tasks),
    )
    return SessionId(rows[0][0])


@operation(Begin.HASTY)
def know(session: SessionId, tasks: Sequence[str]) -> Steps[None]:
    """A session knows other tasks; see `rota.store.protocol.Store.know`."""
    yield KNOW(session=session, tasks=known(tasks))


@operation(Begin.HASTY)
def renew(session: SessionId) -> Steps[Renewal]:
    """Keep a session alive, and learn which of its jobs shall be cancelled."""
    if not (yield SESSION_RENEW(session=session)):
        return Renewal(alive=False)
    rows = yield SESSION_CANCELS(session=session)
    said = read((yield QUEUE_SETTINGS()))
    return Renewal(alive=True, cancel=frozenset(JobId(row[0]) for row in rows), queues=said)


@operation(Begin.HASTY)
def begin_lot(session: SessionId, jobs: Sequence[JobId]) -> Steps[None]:
    """Write down which suspects the session begins to run."""
    if not (yield LOT_BEGIN(session=session, jobs=json_list(jobs))):
        raise lost(session)


def lost(session: SessionId) -> LeaseLost:
    """The error of a worker whose session is over."""
    return LeaseLost(f"session {session} has ended or was rescued; open a new one")


@operation(Begin.HASTY, then=Then.WORKERS | Then.WAITERS)
def close_session(session: SessionId) -> Steps[None]:
    """End a session in order; what it still holds goes back, and no attempt is spent."""
    if (yield SESSION_END(session=session)):
        yield from _release(session, [])


@operation(Begin.HASTY, then=Then.WORKERS | Then.WAITERS)
def release(session: SessionId, held: Sequence[LeaseId]) -> Steps[list[JobId]]:
    """Give the leases back that the session has but does not know of."""
    return (yield from _release(session, held))


def _release(session: SessionId, held: Sequence[LeaseId]) -> Steps[list[JobId]]:
    rows = yield SESSION_RELEASE(session=session, held=json_list(held))
    yield from added(Counter(map(BUCKET, rows)))
    yield from moved_on(rows)
    yield from tell_nodes(rows)
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.HASTY, then=Then.WORKERS | Then.WAITERS)
def rescue(
    keep: Mapping[str, float] | None = None, follow: Follow | None = None
) -> Steps[list[Rescue]]:
    """Take the jobs of dead sessions back; which are to blame, see `rota.model.suspects`."""
    rescues = []
    keeps = json_list(list((keep or {}).items()))
    for session, worker in (yield RESCUE_SESSIONS()):
        begun = [job for job, begun in (yield RESCUE_HELD(session=session)) if begun]
        alone = len(begun) == 1
        rows = yield RESCUE_JOBS(
            session=session,
            jobs=json_list(begun),
            message=death_message(worker, len(begun), spent=alone),
            suspects=len(begun),
            spent=alone,
            keeps=keeps,
        )
        # What had not begun comes back as it was.
        rows = [*rows, *(yield SESSION_RELEASE(session=session, held=json_list([])))]
        yield from added(Counter(map(BUCKET, rows)))
        yield from moved_on(rows)
        yield from tell_nodes(rows)
        available, discarded = (
            tuple(sorted(JobId(row[0]) for row in rows if row[2] == state))
            for state in (State.AVAILABLE, State.DISCARDED)
        )
        came: Sequence[Following] = ()
        if discarded and follow is not None:
            came = yield from following(follow((yield from get(discarded).steps)), append)
        blamed = begun[0] if alone else None
        rescues.append(Rescue(session, worker, available, discarded, blamed, tuple(came)))
    yield RESCUE_NOTICE()
    return rescues
