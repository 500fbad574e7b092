"""What there is to do, mostly in one statement: an idle worker whose turn it is asks nothing else.

As with a claim, most of its cost is to begin. So it reads one segment of the log, where nothing is
in the others; what lies in holes, in other segments or in key lanes is asked for only where there
is such a thing, and the sizes of files where the worker would tidy.

A worker of many queues asks before which of them are in use, and a worker that names its queues by
patterns which queues there are.
"""

from collections.abc import Collection, Sequence

from rota.model.look import Look
from rota.store.operation import Begin, Operation, Stepped, Steps
from rota.store.postgres import rings
from rota.store.postgres.idle import in_use
from rota.store.postgres.statements import for_light_work, sql
from rota.store.postgres.wake import group

LOOK = for_light_work("wake/look")
AVAILABLE = sql("wake/available")
UNTIDY = sql("wake/untidy")


class Looks:
    """Looks around, and remembers in which segment of the log the work is.

    Where workers `listen`, a look also says whether one of them has the watch.
    """

    def __init__(self, *, listen: bool = True) -> None:
        self._listen = listen
        self._segment = 0

    def look(
        self,
        queues: Sequence[str],
        *,
        tasks: Collection[str] | None = None,
        cron: bool = False,
        untidy: bool = True,
    ) -> Operation[Look]:
        """What there is to do; see `rota.store.protocol.Store.look`."""
        return Stepped("look", self._look(queues, tasks, cron=cron, untidy=untidy), Begin.READING)

    def _look(
        self, queues: Sequence[str], tasks: Collection[str] | None, *, cron: bool, untidy: bool
    ) -> Steps[Look]:
        known = None if tasks is None else list(tasks)
        wanted = yield from in_use(queues)
        asked = group(queues, tasks) if self._listen else None
        [(available, self._segment, silent, due, *others)] = yield LOOK[self._segment](
            queues=wanted, cron=cron, group=asked
        )
        if available is None:
            [(available,)] = yield AVAILABLE(queues=wanted, tasks=known)
        if untidy:
            [(untidy,)] = yield UNTIDY(**sizes())
        return Look(available, due, silent, untidy, *others)


def sizes() -> dict[str, int]:
    """The bytes from which on each ring leaves its current table."""
    return {
        "log_size": rings.LOG_SIZE,
        "cursor_size": rings.CURSOR_SIZE,
        "lease_size": rings.LEASE_SIZE,
        "tally_size": rings.TALLY_SIZE,
        "limit_size": rings.LIMIT_SIZE,
    }
