"""Which queue a job of Rota's own goes to, so that a worker takes it."""

from collections.abc import Iterable

from rota.model.patterns import is_pattern, meaning
from rota.store.health import SessionFacts
from rota.store.serving import alive
from rota.top.queues import QueueRow

OWN = "rota"
"""For a worker that takes jobs of all queues, and if there is no other queue."""


def queue_for(workers: Iterable[SessionFacts], rows: Iterable[QueueRow], preferred: str) -> str:
    """A queue that a living worker takes jobs from: that of the jobs it is about, if possible.

    If there is no such worker, a queue that there is: workers of these will come.
    """
    paused = {row.name: row.paused for row in rows}
    living = [worker.queues for worker in workers if alive(worker)]
    if not paused.get(OWN) and any(meaning(queues, OWN) for queues in living):
        return OWN
    named = {name for queues in living for name in queues if not is_pattern(name)}
    free = {name for name in named or paused if not paused.get(name)}
    return preferred if preferred in free else min(free, default=OWN)
