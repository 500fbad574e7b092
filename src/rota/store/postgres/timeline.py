"""Timelines: what a failover to a standby takes away, and how ids stay unique all the same.

A standby may lack the last commits. When it becomes the primary, the ids of the jobs, leases and
sessions in them are given a second time, while workers that have survived remember the first ones.
Such a worker would settle a job that is gone, and complete another one that has its id.

So a session belongs to the timeline on which it was opened. On another one it can neither be
renewed nor claim: its worker gives up all that it holds, and opens a new one. The first session of
a timeline leaves out so many ids of leases and sessions that none is given twice, and the fence
tells what is lost from what is there. Claims wait for a session; so nothing is handed out before.

Ids of jobs are given a second time, since producers wait for no worker.
"""

from rota.store.operation import Steps
from rota.store.postgres.statements import sql

TIMELINE_CHANGED = sql("timeline/timeline_changed")
TIMELINE_LOCK = sql("timeline/timeline_lock")
TIMELINE_FOLLOW = sql("timeline/timeline_follow")


def follow() -> Steps[None]:
    """Do nothing where sessions were opened on this timeline before."""
    [(changed,)] = yield TIMELINE_CHANGED()
    if not changed:
        return
    yield TIMELINE_LOCK()
    # Another worker that held the lock meanwhile has done it.
    [(changed,)] = yield TIMELINE_CHANGED()
    if changed:
        yield TIMELINE_FOLLOW()
