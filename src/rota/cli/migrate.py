"""`rota migrate`: bring the database's tables up to date."""

import click

from rota.cli.options import url_option
from rota.terminal.output import harmless, json_option, say, say_json


@click.command()
@click.option("--dry-run", is_flag=True, help="Print the SQL that would run, and change nothing.")
@url_option
@json_option
def migrate(*, dry_run: bool, url: str | None, as_json: bool) -> None:
    """Bring the database's tables up to date.

    It may run any number of times and from several machines at once. A SQLite file is made if it
    is not there. Tables of a newer Rota are refused with exit status 4.

    \b
    Examples:
      rota migrate --url postgresql:///shop
      rota migrate --dry-run > rota.sql
    """
    from rota.cli.database import connected, missing_file
    from rota.store import migrate as migrating
    from rota.store.opening import default_url
    from rota.store.url import shown

    place = harmless(shown(url or default_url()))
    with connected(url) as (store, connection):
        newest = max(store.migrations())
        if dry_run and missing_file(store) is not None:
            waiting = dict(store.migrations())
        else:
            waiting = migrating.pending(store, connection)
        before = min(waiting, default=newest + 1) - 1
        if dry_run:
            _show(place, before, waiting, as_json=as_json)
            return
        applied = migrating.migrate(store, connection) if waiting else []
    if as_json:
        say_json({"url": place, "from": before, "version": newest, "applied": applied})
    elif not applied:
        say(f"{place} is up to date (version {newest})")
    elif before == 0:
        say(f"{place} has Rota's tables now (version {newest})", fg="green")
    else:
        say(f"{place} went from version {before} to {newest}", fg="green")


def _show(place: str, before: int, waiting: dict[int, str], *, as_json: bool) -> None:
    if as_json:
        pending = [{"version": number, "sql": sql} for number, sql in waiting.items()]
        say_json({"url": place, "version": before, "pending": pending})
        return
    if not waiting:
        say(f"-- {place} is up to date (version {before})")
    for number, sql in waiting.items():
        say(f"-- Migration to version {number}")
        say(sql)
