"""Transfers of jobs from and to a file.

A transaction that writes is alone here, so what it reads stays true.
"""

from collections.abc import Sequence

from rota.model.enqueued import Placed
from rota.model.headers import node_of
from rota.model.job import JobId
from rota.model.transfer import TASK, Transfer, job_on_its_way
from rota.store.operation import Begin, Steps, Then, operation
from rota.store.sqlite.control import delete_steps
from rota.store.sqlite.enqueue import append
from rota.store.sqlite.statements import json_list, sql
from rota.store.transfers import Belongs, Transfers, store_all

READ = sql("transfers/transfer_read")
MARK = sql("transfers/transfer_mark")
RESTORE = sql("transfers/transfer_restore")
KEYS = sql("transfers/transfer_keys")


@operation(Begin.DURABLE, then=Then.WAITERS)
def take(
    jobs: Sequence[JobId], transfer: Transfer, belongs: Belongs
) -> Steps[tuple[JobId, Transfer] | None]:
    """Take jobs out, and store a transfer instead; see `rota.store.transfers.Transfers`."""
    rows = yield READ(jobs=json_list(jobs))
    # Jobs of flows stay where their flow is.
    found = [
        job for job in map(job_on_its_way, rows) if node_of(job.headers) is None and belongs(job)
    ]
    if not found:
        return None
    yield from delete_steps([job.id for job in found])
    whole = transfer.of(found)
    [stored] = yield from append(whole.order())
    return stored, whole


@operation(Begin.DURABLE, then=Then.WORKERS)
def put(transfer: Transfer) -> Steps[list[Placed] | None]:
    """Store a transfer's jobs, once."""
    if not (yield MARK(token=transfer.token, task=TASK)):
        return None
    placed, new = yield from store_all(transfer, append)
    if new:
        yield RESTORE(
            jobs=json_list(
                [
                    (
                        job,
                        was.attempt,
                        was.timeout,
                        was.enqueued_at,
                        was.errors,
                        was.iteration,
                        was.last_run,
                        transfer.headers(was),
                    )
                    for job, was in new
                ]
            )
        )
    keys = [(was.unique_key, was.task, was.until, was.first_at) for _, was in new if was.unique_key]
    if keys:
        yield KEYS(keys=json_list(keys))
    return placed


TRANSFERS = Transfers(take, put)
"""The operations on transfers."""
