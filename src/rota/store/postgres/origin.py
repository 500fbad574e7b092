"""Anchoring the logs anew after a dump was restored into another cluster.

Transaction ids start again there, so the old cursors stand in the future and new jobs before them
would never be claimed. The tables remember which cluster they belong to; a clone made of the
cluster's files has the same name, and is told by ids that are still to come. The first worker that
finds either appends every job that was available or leased once more, under the new numbers, and
starts the cursors at the beginning. So it does where a plain lane has no cursor: older versions
truncated what a dump had not locked yet. A worker that still has a session of the old cluster
cannot renew it here, and opens a new one, which leads here too.

pg_upgrade gives the cluster another name too, but its transaction ids go on: there the logs are
only written anew.

What was enqueued between a restore and the first worker is told by xmin, see origin_move.sql. A
worker that was moved with its database, and has not noticed, claims nothing until then
(`rota.here`) and tidies nothing: the entries of such a claim, and rows that a ring copies forward,
would count as restored, and what was enqueued before them as well.

Known weakness: in a clone, which has the cluster's name, such a worker may claim before its next
sign of life. And jobs that are enqueued while the restore goes on count as restored: where their
lane's cursor is beyond them, as handed out.
"""

from rota.store.operation import Steps
from rota.store.postgres.statements import sql

ORIGIN_CHECK = sql("origin/origin_check")
ORIGIN_SESSIONS = sql("origin/origin_sessions")
ORIGIN_LANES = sql("origin/origin_lanes")
ORIGIN_MOVE = sql("origin/origin_move")
ORIGIN_SEQUENCES = sql("origin/origin_sequences")
ORIGIN_TIMER = sql("origin/origin_timer")
ORIGIN_CURSOR = sql("origin/origin_cursor")
ORIGIN_MEMORY = sql("origin/origin_memory")
ORIGIN_SIGNAL_MARK = sql("origin/origin_signal_mark")
ORIGIN_FLOW = sql("origin/origin_flow")
ORIGIN_FLOW_MARK = sql("origin/origin_flow_mark")
ORIGIN_MARK = sql("origin/origin_mark")
ORIGIN_MARKS_LOCK = sql("origin/origin_marks_lock")
ORIGIN_TALLY = sql("origin/origin_tally")
ORIGIN_TOTALS = sql("origin/origin_totals")
ORIGIN_HISTORY = sql("origin/origin_history")
ORIGIN_SET = sql("origin/origin_set")
LANES_LOCK = sql("rings/lanes_lock")
KEYED_TURN = sql("rings/keyed_turn")
SESSION_FORGET = sql("sessions/session_forget")
SESSION_TAKE = sql("origin/session_take")


def anchor() -> Steps[None]:
    """Do nothing where the tables belong to this cluster."""
    [(foreign,)] = yield ORIGIN_CHECK()
    if not foreign:
        return
    # First the sessions, then the lanes, as a claim locks them: the two cannot deadlock.
    sessions = [row[0] for row in (yield ORIGIN_SESSIONS())]
    yield KEYED_TURN()
    yield LANES_LOCK()
    # Another worker that held the locks meanwhile may have done all of this.
    [(foreign,)] = yield ORIGIN_CHECK()
    if not foreign:
        return
    yield ORIGIN_MARKS_LOCK()
    yield ORIGIN_SEQUENCES()
    leased = []
    for session in sessions:
        leased += [job for row in (yield SESSION_TAKE(session=session, held=[])) for job in row[0]]
    yield ORIGIN_LANES()
    yield ORIGIN_MOVE(leased=leased)
    yield ORIGIN_CURSOR()
    yield ORIGIN_TIMER()
    yield ORIGIN_MARK()
    yield ORIGIN_MEMORY()
    yield ORIGIN_SIGNAL_MARK()
    yield ORIGIN_FLOW()
    yield ORIGIN_FLOW_MARK()
    yield ORIGIN_TALLY()
    yield ORIGIN_TOTALS()
    yield ORIGIN_HISTORY()
    yield SESSION_FORGET(sessions=sessions)
    yield ORIGIN_SET()
