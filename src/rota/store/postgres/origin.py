"""Anchoring the logs anew after a dump was restored into another cluster.

Transaction ids start again there, so the old cursors stand in the future and new jobs before them
would never be claimed. The tables remember which cluster they belong to; the first worker that
finds another one appends every job that was available or leased once more, under the new numbers,
and starts the cursors at the beginning.
"""

from rota.store.operation import Steps
from rota.store.postgres.settle import APPEND_AGAIN
from rota.store.postgres.statements import sql

ORIGIN_CHECK = sql("origin_check")
ORIGIN_SESSIONS = sql("origin_sessions")
ORIGIN_TAKE = sql("origin_take")
ORIGIN_CLEAR = sql("origin_clear")
ORIGIN_CURSOR = sql("origin_cursor")
ORIGIN_MARK = sql("origin_mark")
ORIGIN_SET = sql("origin_set")
LANES_LOCK = sql("lanes_lock")
SESSION_FORGET = sql("session_forget")
SESSION_TAKE = sql("session_take")


def anchor() -> Steps[None]:
    """Do nothing where the tables belong to this cluster."""
    [(foreign,)] = yield ORIGIN_CHECK()
    if not foreign:
        return
    yield LANES_LOCK()
    # Whoever held the lanes meanwhile may have done all of this already.
    [(foreign,)] = yield ORIGIN_CHECK()
    if not foreign:
        return
    sessions = [row[0] for row in (yield ORIGIN_SESSIONS())]
    leased = []
    for session in sessions:
        leased += [job for row in (yield SESSION_TAKE(session=session)) for job in row[0]]
    available = [row[0] for row in (yield ORIGIN_TAKE())]
    yield APPEND_AGAIN(jobs=[*sorted(leased), *available])
    yield ORIGIN_CLEAR()
    yield ORIGIN_CURSOR()
    yield ORIGIN_MARK()
    yield SESSION_FORGET(sessions=sessions)
    yield ORIGIN_SET()
