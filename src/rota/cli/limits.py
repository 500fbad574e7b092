"""`rota limits`: how far each limit is used."""

from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import url_option
from rota.terminal.output import json_option, say_json, table
from rota.terminal.tables import Column

if TYPE_CHECKING:
    from rota import LimitRecord

HEADINGS = ("limit", "running", "starts", Column("within", rank=1), "jobs wait")


@click.group()
def limits() -> None:
    """List the limits, and how full each is.

    \b
    Example:
      rota limits list
    """


@limits.command("list")
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="List at most this many limits.",
)
@url_option
@json_option
def list_(*, most: int, url: str | None, as_json: bool) -> None:
    """List the limits whose jobs wait, are held by workers, or have started lately, by their keys.

    A limit that lets no job begin just now is marked with !. Idle limits are left out.

    \b
    Examples:
      rota limits list
      rota limits list --json | jq '.limits[] | select(.full and .waiting)'
    """
    from rota.cli.database import database
    from rota.terminal.documents import limit_document

    with database(url) as rota:
        records = rota.admin.limits(most=most)
    if as_json:
        say_json({"limits": [limit_document(record) for record in records]})
        return
    table(HEADINGS, [_row(record) for record in records], nothing="No limit is in use.")
    if len(records) == most:
        click.echo(f"({most} limits; more with --most)", err=True)


def _row(limit: "LimitRecord") -> list[Any]:
    from rota.doctor.amounts import duration

    return [
        limit.key + ("!" if limit.full else ""),
        "" if limit.running is None else f"{limit.held} of {limit.running}",
        "" if limit.rate is None else f"{limit.started} of {limit.rate}",
        "" if limit.seconds is None else duration(limit.seconds),
        "yes" if limit.waiting else "",
    ]
