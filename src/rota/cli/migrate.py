"""`rota migrate`: bring the database's tables up to date."""

from collections.abc import Mapping

import click

from rota.cli.each_shard import each_shard
from rota.cli.options import urls_option
from rota.terminal.output import harmless, json_option, say, say_json


@click.command()
@click.option("--dry-run", is_flag=True, help="Print the SQL to apply by hand; change nothing.")
@urls_option
@json_option
@each_shard()
def migrate(*, dry_run: bool, url: str | None, as_json: bool) -> None:
    """Bring the database's tables up to date.

    Run it any number of times, and on several machines at once. A missing SQLite file is created.
    While other sessions use the tables, it tries again for a minute, then ends with exit status 3.
    Tables of a newer Rota are left as they are; the exit status is 4 if this Rota cannot work with
    them.

    \b
    Examples:
      rota migrate --url postgresql:///shop
      rota migrate --dry-run > rota.sql && psql -f rota.sql shop
    """
    from rota import Rota
    from rota.store.opening import default_url
    from rota.store.url import shown

    address = harmless(shown(url or default_url()))
    with Rota(url or default_url()) as rota:
        before = rota.admin.version()
        if dry_run:
            _show(address, before, rota.admin.pending(), as_json=as_json)
            return
        applied = rota.admin.migrate(waiting=_say_waiting)
    version = max([before, *applied])
    if as_json:
        say_json({"url": address, "from": before, "version": version, "applied": applied})
    elif not applied:
        say(f"{address} is up to date (version {version})")
    elif before == 0:
        say(f"{address} has Rota's tables now (version {version})", fg="green")
    else:
        say(f"{address} went from version {before} to {version}", fg="green")


def _say_waiting() -> None:
    from rota.store.migrate import PATIENCE

    click.echo(
        f"Other sessions are using Rota's tables; trying again for up to {PATIENCE:g} seconds …",
        err=True,
    )


def _show(address: str, before: int, waiting: Mapping[int, str], *, as_json: bool) -> None:
    if as_json:
        pending = [{"version": number, "sql": sql} for number, sql in waiting.items()]
        say_json({"url": address, "version": before, "pending": pending})
        return
    if not waiting:
        say(f"-- {address} is up to date (version {before})")
    for number, sql in waiting.items():
        say(f"-- Migration to version {number}")
        say(sql)
