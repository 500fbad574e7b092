"""Queues: who has how many jobs, and which are paused."""

from rota.job import QueueRecord
from rota.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.statements import sql

QUEUES = sql("queues")
QUEUE_PAUSE = sql("queue_pause")
QUEUE_RESUME = sql("queue_resume")


@operation(Begin.NOTHING)
def queues() -> Steps[list[QueueRecord]]:
    """All queues by name, with their counts."""
    records: dict[str, QueueRecord] = {}
    counts: dict[str, dict[State, int]] = {}
    for name, paused, state, jobs in (yield QUEUES()):
        if name not in records:
            counts[name] = {}
            records[name] = QueueRecord(name, bool(paused), counts[name])
        if state is not None:
            counts[name][State(state)] = jobs
    return list(records.values())


@operation(Begin.NOTHING)
def squeeze() -> Steps[bool]:
    """Nothing to do: one writer at a time can keep the totals themselves."""
    yield from ()
    return False


@operation(Begin.DURABLE)
def pause(queue: str) -> Steps[bool]:
    """Stop claims from a queue; false if it was paused already. Creates the queue."""
    return bool((yield QUEUE_PAUSE(queue=queue)))


@operation(Begin.DURABLE)
def resume(queue: str) -> Steps[bool]:
    """Allow claims from a queue again; false if it was not paused."""
    return bool((yield QUEUE_RESUME(queue=queue)))
