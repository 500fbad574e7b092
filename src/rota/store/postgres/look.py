"""What there is to do, in two statements: an idle worker asks for nothing else, when it is its turn.

A worker of many queues asks before which of them are in use, and a worker that names its queues by
patterns which queues there are.
"""

from collections.abc import Collection, Sequence

from rota.model.job import Look
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres import rings
from rota.store.postgres.idle import in_use
from rota.store.postgres.stage import DUE
from rota.store.postgres.statements import sql
from rota.store.postgres.wake import group

LOOK = sql("wake/look")


@operation(Begin.READING)
def look(
    queues: Sequence[str],
    *,
    tasks: Collection[str] | None = None,
    cron: bool = False,
    listen: bool = True,
) -> Steps[Look]:
    """Whether there is something to claim, stage, rescue or tidy; and when an entry is due.

    Where workers `listen`, also whether one of them has the watch.
    """
    known = None if tasks is None else list(tasks)
    wanted = yield from in_use(queues)
    asked = group(queues, tasks) if listen else None
    [(available, *others)] = yield LOOK(
        queues=wanted, tasks=known, cron=cron, group=asked, **sizes()
    )
    [(due,)] = yield DUE()
    return Look(available, due, *others)


def sizes() -> dict[str, int]:
    """The bytes from which on each ring leaves its current table."""
    return {
        "log_size": rings.LOG_SIZE,
        "cursor_size": rings.CURSOR_SIZE,
        "lease_size": rings.LEASE_SIZE,
        "tally_size": rings.TALLY_SIZE,
        "limit_size": rings.LIMIT_SIZE,
    }
