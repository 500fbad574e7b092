"""`rota audit`: what people did on the dashboard."""

from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import url_option
from rota.terminal.output import brief, json_option, say_json, table
from rota.terminal.tables import Column

if TYPE_CHECKING:
    from rota import AuditRecord

HEADINGS = ("deed", "at", "who", "action", "on", "changed", Column("by job", rank=1))


@click.command()
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000),
    default=50,
    show_default=True,
    help="Show at most this many actions.",
)
@click.option(
    "--before",
    metavar="DEED",
    type=click.IntRange(1),
    help="Only actions before this one: the next page.",
)
@url_option
@json_option
def audit(*, most: int, before: int | None, url: str | None, as_json: bool) -> None:
    """List what people did on the dashboard, and who did it, newest first.

    The newest 10,000 actions are kept. What commands do is not recorded.

    \b
    Examples:
      rota audit
      rota audit --json | jq '.deeds[] | select(.who == "ada")'
    """
    from rota.cli.database import database
    from rota.terminal.documents import deed_document

    with database(url) as rota:
        records = rota.admin.audit(most=most, before=before)
    if as_json:
        say_json({"deeds": [deed_document(record) for record in records]})
        return
    table(HEADINGS, [_row(record) for record in records], nothing="Nothing has been done yet.")
    if len(records) == most:
        click.echo(f"({most} actions; more with --most, or --before {records[-1].id})", err=True)


def _row(deed: "AuditRecord") -> list[Any]:
    return [
        deed.id,
        brief(deed.at),
        deed.who,
        deed.action,
        ", ".join(f"{name} {text}" for name, text in deed.what.items()),
        deed.changed,
        "" if deed.job is None else deed.job,
    ]
