"""What somebody has set for single queues: attempts, timeout, concurrency, retention."""

from collections.abc import Mapping

from rota.model.queue_settings import NAMES, NOTHING, QueueSettings
from rota.store.operation import Begin, Rows, Steps, operation
from rota.store.postgres.lanes import ENSURE_QUEUE
from rota.store.postgres.statements import sql

QUEUE_SET = sql("queues/queue_set")
QUEUE_SETTINGS = sql("queues/queue_settings")


@operation(Begin.DURABLE)
def set_queue(queue: str, changes: Mapping[str, float | None]) -> Steps[QueueSettings]:
    """Set some of a queue's settings, take others away; what is set afterwards."""
    yield ENSURE_QUEUE(queue=queue)
    values = {name: changes.get(name) for name in NAMES}
    rows = yield QUEUE_SET(queue=queue, names=list(changes), **values)
    return read(rows).get(queue, NOTHING)


@operation(Begin.READING)
def queue_settings() -> Steps[dict[str, QueueSettings]]:
    """What is set, by queue; queues of which nothing is set are left out."""
    return read((yield QUEUE_SETTINGS()))


def read(rows: Rows) -> dict[str, QueueSettings]:
    """The rows of the table."""
    found = {queue: QueueSettings(*said) for queue, *said in rows}
    return {queue: said for queue, said in found.items() if said != NOTHING}
