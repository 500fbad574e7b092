"""`rota shards`: what concerns several databases of one app together."""

import click

from rota.terminal.exits import USAGE, Failure
from rota.terminal.output import harmless, json_option, say, say_json


@click.group()
def shards() -> None:
    """Move the jobs of a key from one database of an app to another.

    \b
    Example:
      rota shards move shop.tasks:rota acme --to us
    """


@shards.command()
@click.argument("target", metavar="MODULE:APP")
@click.argument("key")
@click.option("--to", metavar="NAME", required=True, help="The shard where the key belongs now.")
@json_option
def move(*, target: str, key: str, to: str, as_json: bool) -> None:
    """Move the waiting jobs of KEY from other shards to the shard where the key belongs now.

    Pin the key first, in every process that enqueues: `Rota.shards(…, pinned={"acme": "us"})`.
    Running jobs end where they are. It can be killed at any point: run it again, and it finishes
    what it began. Repeat it until it moves nothing and no jobs run elsewhere.

    \b
    Examples:
      rota shards move shop.tasks:rota acme --to us
      rota shards move shop.tasks:rota acme --to us --json | jq '.jobs'
    """
    from rota.app.shards import Shards
    from rota.cli.find_app import find_app

    app = find_app(target)
    if not isinstance(app, Shards):
        message = f"{target} has one database; Rota.shards(…) has several"
        raise Failure(message, USAGE)
    with app:
        moved = app.move(key, to=to)
    if as_json:
        say_json({"jobs": moved.jobs, "joined": moved.joined, "running": moved.running})
        return
    say(f"moved {moved.jobs:,} job(s) of {harmless(key)} to {to}")
    if moved.joined:
        say(f"{moved.joined:,} job(s) were not stored: jobs there already have their unique keys")
    if moved.running:
        say(
            f"{moved.running:,} job(s) are still running elsewhere; run this again when they have ended"
        )
