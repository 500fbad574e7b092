"""Transfers of jobs from and to a PostgreSQL database.

To take jobs out, they are locked first, wherever they are: unique keys, timers, and the lanes
against claims. Only then they are read, and only what is locked is deleted, so what was read is
what is deleted. A job that moves on meanwhile stays.
"""

from collections.abc import Sequence

from rota.model.enqueued import Placed
from rota.model.headers import node_of
from rota.model.job import JobId
from rota.model.transfer import TASK, JobOnItsWay, Transfer, job_on_its_way
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.control import (
    AVAILABLE_DELETE,
    DELETE_TIMER,
    KEY_LOCK,
    NOTE_DELETE,
    free,
    lock_lanes,
)
from rota.store.postgres.enqueue import append
from rota.store.postgres.listener import tell_if_waited
from rota.store.postgres.statements import sql
from rota.store.transfers import Belongs, New, Transfers, store_all

LOCK = sql("transfers/transfer_lock")
READ = sql("transfers/transfer_read")
MARK = sql("transfers/transfer_mark")
RESTORE = sql("transfers/transfer_restore")
KEYS = sql("transfers/transfer_keys")


@operation(Begin.DURABLE)
def take(
    jobs: Sequence[JobId], transfer: Transfer, belongs: Belongs
) -> Steps[tuple[JobId, Transfer] | None]:
    """Take jobs out, and store a transfer instead; see `rota.store.transfers.Transfers`."""
    keys = {row[0] for row in (yield KEY_LOCK(jobs=list(jobs)))}
    timers = {row[0] for row in (yield LOCK(jobs=list(jobs)))}
    lanes = yield from lock_lanes(jobs)
    rows = yield READ(jobs=list(jobs))
    found = [
        job
        for job in map(job_on_its_way, rows)
        # Jobs of flows stay where their flow is.
        if (job.unique_key is None or job.unique_key in keys)
        and node_of(job.headers) is None
        and belongs(job)
    ]
    gone = list((yield DELETE_TIMER(jobs=[job.id for job in found if job.id in timers], only=None)))
    waiting = [job.id for job in found if job.id not in timers]
    gone += yield AVAILABLE_DELETE(jobs=waiting, lanes=lanes)
    yield from free(gone)
    ids = {row[0] for row in gone}
    if not ids:
        return None
    yield NOTE_DELETE(jobs=list(ids))
    yield from tell_if_waited(sorted(ids))
    whole = transfer.of([job for job in found if job.id in ids])
    [stored] = yield from append(whole.order())
    return stored, whole


@operation(Begin.DURABLE)
def put(transfer: Transfer) -> Steps[list[Placed] | None]:
    """Store a transfer's jobs, once."""
    if not (yield MARK(token=transfer.token, task=TASK)):
        return None
    placed, new = yield from store_all(transfer, append)
    yield from _restore(transfer, new)
    return placed


def _restore(transfer: Transfer, new: New) -> Steps[None]:
    was = [job for _, job in new]
    if was:
        yield RESTORE(
            jobs=[job for job, _ in new],
            attempts=[job.attempt for job in was],
            timeouts=[job.timeout for job in was],
            enqueued=[job.enqueued_at for job in was],
            errors=[job.errors for job in was],
            headers=[transfer.headers(job) for job in was],
            **_rounds(was),
        )
    if unique := [job for job in was if job.unique_key is not None]:
        yield KEYS(
            keys=[job.unique_key for job in unique],
            tasks=[job.task for job in unique],
            untils=[job.until for job in unique],
            firsts=[job.first_at for job in unique],
            **_rounds(unique),
        )


def _rounds(jobs: Sequence[JobOnItsWay]) -> dict[str, object]:
    return {
        # None is 0, as the log has it.
        "iterations": [job.iteration or None for job in jobs],
        "last_runs": [job.last_run for job in jobs],
    }


TRANSFERS = Transfers(take, put)
"""The operations on transfers."""
