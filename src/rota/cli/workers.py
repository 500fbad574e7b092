"""`rota workers`: which workers there are, and what each of them holds."""

from typing import TYPE_CHECKING, Any

import click

from rota.cli.each_shard import each_shard
from rota.cli.options import urls_option
from rota.terminal.output import brief, json_option, say_json, table
from rota.terminal.tables import Column

if TYPE_CHECKING:
    from rota import WorkerRecord

HEADINGS = (
    "worker",
    Column("queues", rank=2, prose=True),
    Column("began", rank=1),
    Column("heard", rank=3),
    "job",
    "task",
    Column("attempt", rank=2),
    Column("since", spare=True),
)


@click.group()
def workers() -> None:
    """List the workers, what runs there, and since when.

    \b
    Example:
      rota workers list
    """


@workers.command("list")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="Show at most this many jobs of each worker, those held longest first.",
)
@urls_option
@json_option
@each_shard()
def list_(*, jobs: int, url: str | None, as_json: bool) -> None:
    """List the workers that have not stopped, with a line for each job that they hold.

    A job that a worker holds runs there, or is about to. A worker that has not been heard of for
    too long is marked with !; its jobs are about to be rescued. On SQLite it is not known since
    when a job is held.

    \b
    Examples:
      rota workers list
      rota workers list --json | jq '.workers[].jobs[] | select(.task == "shop.send")'
    """
    from rota.cli.database import database

    with database(url) as rota:
        records = rota.admin.workers(jobs=jobs)
    if as_json:
        say_json({"workers": [_document(record) for record in records]})
        return
    rows = [row for record in records for row in _rows(record)]
    table(HEADINGS, rows, nothing="There are no workers.")
    for record in records:
        if more := record.held - len(record.jobs):
            name = f"{record.host}:{record.pid}"
            click.echo(f"({name} holds {more} more; --jobs shows more)", err=True)


def _rows(worker: "WorkerRecord") -> list[list[Any]]:
    """A line for each job, or one without a job; the worker stands in the first of them."""
    from rota.top.figures import age

    own = [
        f"{worker.host}:{worker.pid}",
        ", ".join(worker.queues),
        brief(worker.since),
        age(worker.silent) + ("" if worker.alive else "!"),
    ]
    jobs: list[list[Any]] = [
        [job.id, job.task, job.attempt, brief(job.since)] for job in worker.jobs
    ]
    first, *others = jobs or [["", "", "", ""]]
    return [own + first, *([""] * len(own) + job for job in others)]


def _document(worker: "WorkerRecord") -> dict[str, Any]:
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "queues": list(worker.queues),
        "since": worker.since,
        "alive": worker.alive,
        "heard_seconds": worker.silent,
        "timeout_seconds": worker.timeout,
        "held": worker.held,
        "jobs": [
            {
                "id": job.id,
                "task": job.task,
                "queue": job.queue,
                "attempt": job.attempt,
                "since": job.since,
            }
            for job in worker.jobs
        ],
    }
