"""`rota history`: what happened lately, in numbers and in a line for each."""

from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import Duration, Name, url_option
from rota.terminal.output import brief, harmless, json_option, on_terminal, say, say_json, table
from rota.terminal.tables import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota import HistoryPoint

HEADINGS = (
    "from",
    "appended",
    Column("claimed", rank=2),
    "completed",
    "discarded",
    "available",
    "oldest",
    Column("took", rank=1, spare=True),
)

ROWS = 24
"""About how many rows a table has, unless it is said how long each lasts."""

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480)
"""Minutes of which people think in."""


@click.command()
@click.option("--queue", metavar="NAME", type=Name("queue"), help="Only this queue.")
@click.option(
    "--since",
    type=Duration(),
    default="6h",
    show_default=True,
    help="How far back to look, such as 30m, 24h, 7d; seven days are kept.",
)
@click.option(
    "--every",
    type=Duration(),
    help="How much time each row covers, such as 1m, 1h.  [default: whatever fits a screen; 1m with --json]",
)
@url_option
@json_option
def history(
    *, queue: str | None, since: float, every: float | None, url: str | None, as_json: bool
) -> None:
    """Show how many jobs came, were claimed, ended and waited lately.

    Workers record it once a minute. Rows are missing for times without a worker; the next row has
    what came meanwhile, and says how much time it covers. `available` and `oldest` are the highest
    values at the end of a minute.

    \b
    Examples:
      rota history --queue mail --since 24h
      rota history --json | jq '.points[] | select(.discarded > 0)'
    """
    from rota.cli.database import database

    step = every or (60.0 if as_json else _step(since) * 60.0)
    with database(url) as rota:
        points = rota.admin.history(queue, since=since, step=step)
    if as_json:
        say_json({"queue": queue, "step_seconds": step, "points": points})
        return
    if on_terminal() and points:
        _lines(queue, points)
    table(
        HEADINGS,
        [_row(point, step) for point in points],
        nothing="No history yet: workers write it once a minute.",
    )


def _step(since: float) -> int:
    return next((step for step in STEPS if since / 60 <= step * ROWS), STEPS[-1])


def _row(point: "HistoryPoint", step: float) -> list[Any]:
    from rota.doctor.amounts import duration

    known = point.seconds > 0
    return [
        brief(point.at),
        point.appended if known else "",
        point.claimed if known else "",
        point.completed if known else "",
        point.discarded if known else "",
        point.available,
        "" if point.oldest is None else duration(point.oldest),
        duration(point.seconds) if point.seconds > step else "",
    ]


def _lines(queue: str | None, points: "Sequence[HistoryPoint]") -> None:
    from rota.top.figures import sparkline

    say(f"queue {harmless(queue)}" if queue else "all queues", bold=True)
    for name in ("appended", "completed", "discarded"):
        rates = [point.per_minute(getattr(point, name)) for point in points]
        most = max((rate for rate in rates if rate is not None), default=0.0)
        say(f"{name:10} {sparkline(rates)}  at most {most:,.4g} a minute")
    waiting = [float(point.available) for point in points]
    say(f"{'available':10} {sparkline(waiting)}  at most {max(waiting):,.0f}")
    say()
