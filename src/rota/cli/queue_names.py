"""Queues that were named and are not there: an error that says which one may have been meant."""

from collections.abc import Collection
from shlex import quote

import click

from rota import Rota
from rota.model.job import QueueRecord
from rota.model.patterns import strange
from rota.terminal.advice import addressed_within
from rota.terminal.exits import Failure
from rota.terminal.output import harmless

NEWEST = 100
"""Among so many of the newest jobs a task is looked for that may have been meant."""


def queue_record(rota: Rota, name: str, default: QueueRecord | None = None) -> QueueRecord:
    """The queue of that name.

    Raises:
        Failure: There is none, and no default.
    """
    found = {record.name: record for record in rota.admin.queues()}
    if (record := found.get(name, default)) is None:
        raise Failure(missing(name, found))
    return record


def require_queue(rota: Rota, name: str | None) -> None:
    """After an answer that is empty: refuse a queue that is not there.

    Raises:
        Failure: There is none of that name.
    """
    if name is None:
        return
    queues = rota.database.run(rota.database.store.queue_names())
    if name not in queues:
        raise Failure(missing(name, queues))


def missing(name: str, queues: Collection[str]) -> str:
    """That there is no such queue, which one may be meant, and where they all are."""
    meant = "" if (near := _nearest(name, queues)) is None else f"did you mean {near}? "
    return f"there is no queue named {name}; {meant}`rota queues list` lists the queues"


def ask_for_queue(name: str, queues: Collection[str], back: str) -> None:
    """After a change of a new queue: say which other queue may be meant, and the way `back`."""
    if near := _nearest(name, queues):
        _hint(f"did you mean {near}? `{back} {quote(name)}` undoes this")


def ask_for_task(rota: Rota, name: str | None) -> None:
    """After an empty answer: say which task may be meant, if a newest job is of a similar task."""
    if name is None:
        return
    if near := _nearest(name, {job.task for job in rota.jobs.list(limit=NEWEST)}):
        _hint(f"did you mean the task {near}? Some of the newest jobs are of it")


def _nearest(name: str, known: Collection[str]) -> str | None:
    return strange([name], known).get(name)


def _hint(message: str) -> None:
    click.echo(f"({harmless(addressed_within(message))})", err=True)
