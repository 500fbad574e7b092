"""`rota queues`: how many jobs wait where, pausing and resuming queues, and their settings."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

from rota.cli.each_shard import each_shard
from rota.cli.options import Name, url_option, urls_option
from rota.cli.queue_clear import clear
from rota.cli.queue_settings import set_, show, unset
from rota.model.states import State
from rota.terminal.exits import Failure
from rota.terminal.output import collect, harmless, json_option, say, say_json, table
from rota.terminal.tables import Column, states

if TYPE_CHECKING:
    from rota import QueueRecord


@click.group()
def queues() -> None:
    """List, pause, resume, set up and clear queues.

    The first job that is enqueued into a queue creates it.

    \b
    Examples:
      rota queues list
      rota queues pause mail
      rota queues set mail --concurrency 4
    """


for command in (set_, unset, show, clear):
    queues.add_command(command)


@queues.command("list")
@click.option("--queue", metavar="NAME", type=Name("queue"), help="Only this queue.")
@click.option(
    "--state",
    type=click.Choice([state.value for state in State]),
    help="Only queues with jobs in this state.",
)
@click.option("--limit", type=click.IntRange(min=1), help="List at most this many queues.")
@urls_option
@json_option
@each_shard(queues=True)
def list_(
    *, queue: str | None, state: str | None, limit: int | None, url: str | None, as_json: bool
) -> None:
    """List the queues and how many of their jobs are in each state.

    \b
    Example:
      rota queues list --url postgresql:///shop
    """
    from rota.cli.database import database
    from rota.cli.queue_names import missing

    with database(url) as rota:
        records = rota.admin.queues()
    known = {record.name for record in records}
    records = [record for record in records if queue in {None, record.name}]
    if state is not None:
        records = [record for record in records if record.counts.get(State(state))]
    records = records[:limit]
    listed = [
        {
            "name": record.name,
            "paused": record.paused,
            "jobs": {state.value: record.counts.get(state, 0) for state in State},
        }
        for record in records
    ]
    if as_json:
        say_json({"queues": listed})
    else:
        collect({"queues": listed})
        _say_table(records, known)
    if queue is not None and queue not in known:
        raise Failure(missing(queue, known))


def _say_table(records: "Sequence[QueueRecord]", known: Collection[str]) -> None:
    rows = [
        [
            record.name,
            "yes" if record.paused else "",
            *(record.counts.get(state, 0) for state in State),
        ]
        for record in records
    ]
    ranks = dict.fromkeys(State, 1) | {State.COMPLETED: 3, State.CANCELLED: 2}
    headings: list[str | Column] = ["queue", Column("paused", spare=True), *states(ranks)]
    nothing = "There are no such queues." if known else "There are no queues yet."
    table(headings, rows, nothing=nothing)


@queues.command()
@click.argument("name", type=Name("queue"))
@url_option
@json_option
def pause(*, name: str, url: str | None, as_json: bool) -> None:
    """Stop workers from taking jobs from a queue; running jobs go on.

    A queue may be paused before it has its first job.

    \b
    Example:
      rota queues pause mail
    """
    from rota.cli.database import database
    from rota.cli.queue_names import ask_for_queue

    with database(url) as rota:
        known = {record.name for record in rota.admin.queues()}
        changed = rota.queue(name).pause()
    if as_json:
        say_json({"queue": name, "paused": True, "changed": changed})
    elif not changed:
        say(f"queue {harmless(name)} was already paused")
    else:
        new = "" if name in known else "; it had no job so far"
        say(f"queue {harmless(name)} is paused{new}")
    ask_for_queue(name, known, "rota queues resume")


@queues.command()
@click.argument("name", type=Name("queue"))
@url_option
@json_option
def resume(*, name: str, url: str | None, as_json: bool) -> None:
    """Let workers take jobs from a queue again.

    \b
    Example:
      rota queues resume mail
    """
    from rota.cli.database import database
    from rota.cli.queue_names import queue_record

    with database(url) as rota:
        queue_record(rota, name)
        changed = rota.queue(name).resume()
    if as_json:
        say_json({"queue": name, "paused": False, "changed": changed})
    elif changed:
        say(f"queue {harmless(name)} is resumed")
    else:
        say(f"queue {harmless(name)} was not paused")
