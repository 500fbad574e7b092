"""Queues: how many jobs each has, and which are paused."""

from rota.model.job import QueueRecord
from rota.model.states import State
from rota.store.operation import Begin, Steps, Then, operation
from rota.store.sqlite.counters import APPENDED, CLAIMED, REMOVED
from rota.store.sqlite.statements import sql

QUEUES = sql("queues/queues")
QUEUE_NAMES = sql("queues/queue_names")
QUEUE_PAUSE = sql("queues/queue_pause")
QUEUE_RESUME = sql("queues/queue_resume")


@operation(Begin.NOTHING)
def queues() -> Steps[list[QueueRecord]]:
    """All queues by name, with their counts."""
    paused: dict[str, bool] = {}
    counted: dict[str, dict[str, int]] = {}
    for name, is_paused, state, jobs in (yield QUEUES()):
        paused[name] = bool(is_paused)
        if jobs:
            counted.setdefault(name, {})[state] = jobs
    return [_record(name, paused[name], counted.get(name, {})) for name in paused]


def _record(name: str, paused: bool, counted: dict[str, int]) -> QueueRecord:  # noqa: FBT001
    appended, claimed = counted.pop(APPENDED, 0), counted.pop(CLAIMED, 0)
    counted["available"] = appended - claimed - counted.pop(REMOVED, 0)
    counts = {State(state): jobs for state, jobs in counted.items() if jobs}
    return QueueRecord(name, paused, counts, appended, claimed)


@operation(Begin.NOTHING)
def queue_names() -> Steps[list[str]]:
    """All queues, in no order."""
    return [name for (name,) in (yield QUEUE_NAMES())]


@operation(Begin.NOTHING)
def squeeze() -> Steps[bool]:
    """Nothing to do: one writer at a time can keep the totals themselves."""
    yield from ()
    return False


@operation(Begin.DURABLE)
def pause(queue: str) -> Steps[bool]:
    """Stop claims from a queue; false if it was already paused. Creates the queue."""
    return bool((yield QUEUE_PAUSE(queue=queue)))


@operation(Begin.DURABLE, then=Then.WORKERS)
def resume(queue: str) -> Steps[bool]:
    """Allow claims from a queue again; false if it was not paused."""
    return bool((yield QUEUE_RESUME(queue=queue)))
