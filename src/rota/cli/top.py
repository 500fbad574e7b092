"""`rota top`: queues, workers and the oldest transaction, live on a terminal, or once."""

import os
import sys
import threading
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import click

from rota.cli.each_shard import each_shard
from rota.cli.options import Duration, urls_option
from rota.terminal.output import collect, harmless, json_option, on_terminal, say, say_json, table
from rota.terminal.tables import Column, states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.health import HorizonFacts
    from rota.top.queues import QueueRow
    from rota.top.snapshot import Snapshot

SHORTEST = 0.1
"""Seconds between two looks, at the least."""


@click.command()
@click.option(
    "--every", type=Duration(), default="1s", show_default=True, metavar="DURATION",
    help="How often to look: 1s, 0.5s, 2m.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print once, and exit.")
@urls_option
@json_option
def top(*, every: float, once: bool, url: str | None, as_json: bool) -> None:
    """Watch queues, rates, workers and the oldest transaction, live.

    A look costs a few milliseconds, whatever the number of jobs. On a terminal the live view needs
    textual: install rota[top]. If ROTA_SHARDS names several databases, it shows the queues of all
    of them, as eu/mail, and their sum. In a pipe, with --once or with --json, it prints once and
    exits; for the rates it looks twice, --every apart.

    Keys: q quits, p pauses or resumes the queue under the cursor (and asks first), s sorts, /
    filters, ? explains.

    \b
    Examples:
      rota top --url postgresql:///shop
      rota top --once --every 5s
      rota top --json | jq '.queues[] | select(.out_per_second == 0)'
    """
    if every < SHORTEST:
        raise click.BadParameter(f"must be at least {SHORTEST} s", param_hint="'--every'")
    if as_json or once or not _live():
        _print_each(url=url, every=every, as_json=as_json)
    else:
        _watch(url, every)


def _live() -> bool:
    """Whether input and output are a terminal that can move its cursor."""
    return on_terminal() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"


def _watch(url: str | None, every: float) -> None:
    try:
        from rota.top.screen import Top
    except ImportError as error:
        if not (error.name or "").startswith("textual"):
            raise
        from rota.errors import ConfigError

        message = "the live view needs textual; install rota[top], or use --once"
        raise ConfigError(message) from error
    from rota.cli.database import database_or_shards
    from rota.store.opening import default_url, open_store
    from rota.store.shard_urls import from_environment
    from rota.store.url import shown
    from rota.top.eyes import Eyes
    from rota.top.looker import Eye, Looker

    with database_or_shards(url):
        pass  # fails before the screen is taken
    shards = from_environment() if url is None else {}
    with ExitStack() as stack:
        if shards:
            stores = {
                name: stack.enter_context(closing(open_store(each)))
                for name, each in shards.items()
            }
            address = ", ".join(shards)
            looker = Looker(Eyes(stores), every)
        else:
            address = shown(url := url or default_url())
            looker = Looker(Eye(stack.enter_context(closing(open_store(url)))), every)
        try:
            app = Top(looker, address)
            app.run()
        finally:
            looker.stop()
    if app.return_code:
        click.get_current_context().exit(app.return_code)


@each_shard(queues=True)
def _print_each(*, url: str | None, every: float, as_json: bool) -> None:
    _print_once(url, every, as_json=as_json)


def _print_once(url: str | None, every: float, *, as_json: bool) -> None:
    from rota import Rota
    from rota.cli.database import database
    from rota.store.opening import default_url
    from rota.store.url import shown
    from rota.top.history import History
    from rota.top.queues import queue_rows
    from rota.top.snapshot import Snapshot, look

    history = History()

    def looked(rota: Rota, product: str) -> Snapshot:
        snapshot = look(rota.database.store, rota.database, product)
        history.add(snapshot.moment, snapshot.queues)
        return snapshot

    with database(url) as rota:
        product = rota.database.run(rota.database.store.product())
        looked(rota, product)
        threading.Event().wait(every)
        snapshot = looked(rota, product)
    rows = queue_rows(snapshot, history)
    address = shown(url or default_url())
    document = _document(address, every, snapshot, rows)
    if as_json:
        say_json(document)
    else:
        collect(document)
        _say(address, snapshot, rows)


def _document(
    address: str, every: float, snapshot: "Snapshot", rows: "Sequence[QueueRow]"
) -> dict[str, Any]:
    from rota.model.states import State

    return {
        "url": address,
        "database": snapshot.product,
        "at": snapshot.at,
        "every_seconds": every,
        "took_seconds": snapshot.took,
        "queues": [
            {
                "name": row.name,
                "paused": row.paused,
                "jobs": {state.value: row.counts.get(state, 0) for state in State},
                "in_per_second": row.rates.appended if row.rates else None,
                "out_per_second": row.rates.claimed if row.rates else None,
                "oldest_seconds": row.oldest,
                "served": row.served,
            }
            for row in rows
        ],
        "workers": [
            {
                "session": worker.id,
                "worker": worker.worker,
                "queues": worker.queues,
                "open_seconds": worker.open,
                "silent_seconds": worker.silent,
                "timeout_seconds": worker.timeout,
                "jobs": worker.leased,
                "oldest_lease_seconds": worker.oldest_lease,
            }
            for worker in snapshot.workers
        ],
        "horizon": _horizon(snapshot.horizon),
    }


def _horizon(horizon: "HorizonFacts") -> dict[str, Any]:
    from rota.top.horizon import oldest

    holder = oldest(horizon)
    return {
        "oldest": holder
        and {
            "kind": holder.kind,
            "pid": holder.pid,
            "name": holder.name,
            "role": holder.role,
            "state": holder.state,
            "seconds": holder.seconds,
            "transactions": holder.age,
        },
        "hidden_sessions": horizon.hidden,
        "log_bytes": horizon.log_size,
    }


def _say(address: str, snapshot: "Snapshot", rows: "Sequence[QueueRow]") -> None:
    from rota.model.states import State
    from rota.terminal.output import moment
    from rota.top.figures import age, rate
    from rota.top.horizon import notice

    say(
        f"{harmless(address)}  {harmless(snapshot.product)}  {moment(snapshot.at)}",
        bold=on_terminal(),
    )
    ranks: dict[State, int] = {state: 1 for state in State if state is not State.CANCELLED}
    ranks |= {State.COMPLETED: 3, State.SCHEDULED: 2}
    table(
        ["queue", Column("paused", spare=True), *states(ranks), "in/s", "out/s", "oldest"],
        [
            [
                row.name,
                "yes" if row.paused else "",
                *(row.counts.get(state, 0) for state in ranks),
                rate(row.rates.appended if row.rates else None),
                rate(row.rates.claimed if row.rates else None),
                age(row.oldest) + ("!" if row.waits_in_vain else ""),
            ]
            for row in rows
        ],
        nothing="There are no queues yet.",
    )
    say()
    table(
        ["worker", Column("queues", prose=True), "jobs", "oldest", "heard", "since"],
        [
            [worker.worker, ", ".join(worker.queues), worker.leased, age(worker.oldest_lease),
             age(worker.silent) + ("!" if worker.silent > worker.timeout else ""), age(worker.open)]
            for worker in snapshot.workers
        ],
        nothing="There are no workers.",
    )  # fmt: skip
    say()
    say(harmless(notice(snapshot.horizon).text))
