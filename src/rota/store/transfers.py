"""Transfers of jobs between databases: what a store does to let jobs go, and to take them in.

Both are one transaction each. Jobs are taken in by the steps of an ordinary enqueue, which knows of
lanes, limits, unique keys, counts and wakers; what an enqueue does not say, such as attempts and
errors, is written into the new rows after it, before anybody can see them.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from rota.model.enqueued import Enqueued, Placed, Placing
from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.limit import Limit
from rota.model.transfer import JobOnItsWay, LimitNumbers, Transfer
from rota.model.unique import STATES, Unique
from rota.store.operation import Operation, Steps

Append = Callable[[Order], Steps[Enqueued]]
"""A store's steps of an enqueue, as a part of a larger transaction."""


Belongs = Callable[[JobOnItsWay], bool]
"""Whether a job, as it is by now, is one of the key's: a replacement may have given it another one."""


class Transfers(NamedTuple):
    """The operations on transfers.

    Attributes:
        take: Take those of these jobs out that wait and belong to it, and store the transfer with
            them instead: as which job, and the whole transfer. `None`: there are none, any more.
        put: Store a transfer's jobs, in its order; what became of each. `None`: that was done
            before.
    """

    take: Callable[[Sequence[JobId], Transfer, Belongs], Operation[tuple[JobId, Transfer] | None]]
    put: Callable[[Transfer], Operation[list[Placed] | None]]


New = list[tuple[JobId, JobOnItsWay]]
"""Jobs that are new here, with what they were."""


def store_all(transfer: Transfer, append: Append) -> Steps[tuple[list[Placed], New]]:
    """Store a transfer's jobs as an enqueue does; what became of each, and those that are new.

    A unique key that is taken here keeps its job: two enqueues of the key here would have left one
    as well.
    """
    placed: list[Placed] = []
    for order in _orders(transfer):
        placed += (yield from append(order)).placed
    new = [
        (each.job, job)
        for each, job in zip(placed, transfer.jobs, strict=True)
        if each.placing is Placing.CREATED
    ]
    return placed, new


def _orders(transfer: Transfer) -> Iterator[Order]:
    """Orders that have these jobs in their order; neighbours of one spec are together."""
    for (spec, fair), jobs in groupby(transfer.jobs, _spec):
        alike = list(jobs)
        keys = Keys(
            unique=None if spec.unique is None else [str(job.unique_key) for job in alike],
            limit=None if spec.limit is None else [str(spec.limit.key)] * len(alike),
            fair=[str(job.fair) for job in alike] if fair else None,
        )
        yield Order(spec, [job.args for job in alike], keys if any(keys) else None)


def _spec(job: JobOnItsWay) -> tuple[JobSpec, bool]:
    """The spec of a job, and whether it has a fair key."""
    unique = None
    if job.unique_key is not None:
        # The key is known already, with the beginning of its period in it.
        unique = Unique(key="{key}", while_=("waiting",) if job.while_waiting else STATES)
    spec = JobSpec(
        job.task,
        job.queue,
        job.priority,
        job.max_attempts,
        job.timeout,
        at=None if job.scheduled_at is None else _moment(job.scheduled_at),
        unique=unique,
        limit=None if job.limit is None else _limit(job.limit),
    )
    return spec, job.fair is not None


def _limit(numbers: LimitNumbers) -> Limit:
    rates = {1.0: "per_second", 60.0: "per_minute", 3600.0: "per_hour"}
    rate = {} if numbers.seconds is None else {rates[numbers.seconds]: numbers.rate}
    return Limit(numbers.key, numbers.running, **rate)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
