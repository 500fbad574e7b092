"""What there is to do. Statements cost next to nothing in a file, so they ask one by one."""

from collections.abc import Collection, Sequence

from rota.model.look import Look
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.claim import available
from rota.store.sqlite.stage import STAGE_NEXT
from rota.store.sqlite.statements import sql

CRON_NEXT = sql("wake/cron_next")
UNRECORDED = sql("wake/unrecorded")
UNDECIDED = sql("wake/undecided")


@operation(Begin.NOTHING)
def look(
    queues: Sequence[str],
    *,
    tasks: Collection[str] | None = None,
    cron: bool = False,
    untidy: bool = True,
) -> Steps[Look]:
    """Whether there is something to claim or to stage, and when an entry is due.

    Rescuing and tidying find out by themselves.
    """
    [(due,)] = yield STAGE_NEXT()
    entry = later = None
    if cron:
        [(entry, later)] = yield CRON_NEXT()
    [(unrecorded,)] = yield UNRECORDED()
    [(undecided,)] = yield UNDECIDED()
    return Look(
        (yield from available(queues, tasks)),
        _left(due),
        silent=True,
        untidy=untidy,
        cron=_left(entry),
        cron_later=later,
        unrecorded=bool(unrecorded),
        undecided=bool(undecided),
    )


def _left(seconds: float | None) -> float | None:
    return None if seconds is None else max(seconds, 0.0)
