"""Segments of finished jobs that were left: emptied, or first relieved of the few jobs kept long.

A segment can be emptied when the retention of all its jobs is over. One job in a thousand that is
kept for a month would keep all others there, and soon all segments. So where at most a quarter of a
segment is still kept, and for long, these jobs are moved to the current segment. Space is never
more than some four times of what is kept; and since each move frees three times what it writes, all
moves together write at most a third of what settlements do. Where all jobs are kept alike, nothing
is moved: the last quarter of a segment expires by itself soon.

A segment is walked in pieces, each in a short transaction that waits for no lock, some in each
round of housekeeping; a sequence says how far. The table is truncated in a later round.

Known weakness: how much is kept is estimated, from a few of the segment's blocks.
"""

from rota.store.operation import Apart, Begin, Steps, operation
from rota.store.postgres import rings
from rota.store.postgres.statements import sql

FEW = 0.25
"""The share of a segment up to which it is worth while to move what is kept."""

BLOCKS = 1024
"""Blocks that one transaction walks: 8 MB, without long args and results."""

PIECES = 8
"""Such transactions in one round; the next round goes on."""

FINISHED_SHARE = sql("rings/finished_share")
FINISHED_PLACE = sql("rings/finished_place")
FINISHED_MOVE = sql("rings/finished_move")
FINISHED_MOVED = sql("rings/finished_moved")


@operation(Begin.NOTHING)
def free_finished(segment: int) -> Steps[list[str]]:
    """Empty a segment of finished jobs that was left, or move what keeps it from being emptied.

    Raises:
        LockTimeout: The segment, or one of its jobs, is in use.
    """
    [(share, seconds)] = yield FINISHED_SHARE(segment=segment)
    if share > FEW or (share and seconds <= rings.FINISHED_AGE):
        return []
    if not share:
        [(kept,)] = yield rings.FINISHED_KEPT(segment=segment)
        if not kept:
            [(done,)] = yield Apart(rings.empty_finished(segment))
            return list(done)
    total = 0
    for _ in range(PIECES):
        [((moved, more),)] = yield Apart(move_kept(segment))
        total += moved
        if not more:
            break
    return (
        [f"finished: moved {total} job(s) that are kept on from segment {segment}"] if total else []
    )


@operation(Begin.HASTY)
def move_kept(segment: int) -> Steps[tuple[int, bool]]:
    """Move what is kept in the next piece of a segment; how many jobs, and whether there is more.

    Raises:
        LockTimeout: One of the jobs is in use.
    """
    if not (yield from rings.may_empty(rings.FINISHED_STATE, segment)):
        return 0, False
    yield rings.LOCK_WAIT()
    [(first, blocks)] = yield FINISHED_PLACE(segment=segment)
    until = first + BLOCKS
    [(moved,)] = yield FINISHED_MOVE(segment=segment, first=f"({first},0)", until=f"({until},0)")
    more = until < blocks
    yield FINISHED_MOVED(segment=segment, block=until if more else 0)
    return int(moved), more
