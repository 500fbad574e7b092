"""Storing jobs that have keys."""

from collections.abc import Sequence

from rota.job import JobSpec, Keys
from rota.placed import Placed, Placing
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.enqueue import enqueue


@operation(Begin.DURABLE)
def enqueue_keyed(spec: JobSpec, args: Sequence[str], keys: Keys) -> Steps[list[Placed]]:  # noqa: ARG001
    """Store one job per element of `args`; see `rota.store.protocol.Store.enqueue_keyed`."""
    jobs = yield from enqueue(spec, args, copy=False).steps
    return [Placed(job, Placing.CREATED) for job in jobs]
