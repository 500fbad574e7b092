"""`rota cron`: the entries that make jobs at their times."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import Duration, Name, url_option
from rota.model.enqueued import Placing
from rota.terminal.exits import USAGE, Failure
from rota.terminal.output import harmless, json_option, say, say_json, table
from rota.terminal.tables import Column

if TYPE_CHECKING:
    from rota import Rota

APP = click.option(
    "--app",
    "target",
    metavar="MODULE:APP",
    help="The app that has the task.  [default: the one that ROTA_APP names]",
)
TIMES: list[Any] = [
    click.option(
        "--timezone", metavar="ZONE", help="The time zone of the times, such as Europe/Rome."
    ),
    click.option(
        "--missed",
        type=click.Choice(["skip", "latest", "all"]),
        help="What to do about due times when no worker was running.",
    ),
    click.option(
        "--jitter", type=Duration(), metavar="DURATION", help="Start jobs up to this much later."
    ),
    click.option("--args", "text", metavar="JSON", help="""The task's args, such as '{"n": 1}'."""),
]


def times(function: Any) -> Any:
    """The options that `add` and `change` share."""
    for option in reversed(TIMES):
        function = option(function)
    return function


@click.group()
def cron() -> None:
    """List, add, change, remove, pause, resume and run cron entries.

    \b
    Examples:
      rota cron list
      rota cron add nightly "0 3 * * *" --app shop:rota --task shop.tidy --timezone Europe/Rome
      rota cron pause nightly
      rota cron run nightly
    """


@cron.command("list")
@click.option(
    "--next",
    "count",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many due times to show for each entry.",
)
@url_option
@json_option
def list_(*, count: int, url: str | None, as_json: bool) -> None:
    """List the entries, with their next due times in their own time zones.

    \b
    Example:
      rota cron list --next 3
    """
    from rota.cli import cron_text
    from rota.cli.database import database
    from rota.terminal.documents import entry_details

    with database(url) as rota:
        records = rota.cron.entries()
    if as_json:
        say_json({"entries": [entry_details(record, count) for record in records]})
        return
    headings: list[str | Column] = [
        "name",
        "expression",
        Column("timezone", rank=2),
        "next",
        Column("last", rank=3),
        Column("task", rank=1),
        Column("state"),
    ]
    rows = [cron_text.row(record, count) for record in records]
    table(headings, rows, nothing="There are no cron entries yet.")


@cron.command()
@click.argument("name", type=Name("cron"))
@click.argument("expression")
@APP
@click.option("--task", metavar="NAME", required=True, help="The task of the jobs.")
@click.option("--due", metavar="PARAMETER", help="The task's parameter that gets the due time.")
@times
@url_option
@json_option
def add(
    *,
    name: str,
    expression: str,
    target: str | None,
    task: str,
    due: str | None,
    timezone: str | None,
    missed: str | None,
    jitter: float | None,
    text: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Add an entry.

    The app is needed to check the task and its args. Without --url the app's database is used.

    \b
    Example:
      rota cron add nightly "0 3 * * *" --app shop:rota --task shop.tidy --timezone Europe/Rome
    """
    given = {"timezone": timezone, "missed": missed, "jitter": jitter, "args": _args(text)}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    with _app(target, url) as rota:
        rota.cron.add(name, expression, task, due=due, **options)
    if as_json:
        say_json({"entry": name, "added": True})
    else:
        say(f"cron entry {harmless(name)} is added")


@cron.command()
@click.argument("name", type=Name("cron"))
@click.option("--expression", metavar="TEXT", help="The new expression.")
@APP
@times
@url_option
@json_option
def change(
    *,
    name: str,
    expression: str | None,
    target: str | None,
    timezone: str | None,
    missed: str | None,
    jitter: float | None,
    text: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Change an entry; options that are not given stay as they are.

    An entry from code keeps the change until its declaration changes. --args needs --app.

    \b
    Example:
      rota cron change nightly --expression "30 4 * * *" --missed all
    """
    options: dict[str, Any] = {
        "expression": expression, "timezone": timezone, "missed": missed, "jitter": jitter,
        "args": _args(text),
    }  # fmt: skip
    needs_app = text is not None or target is not None
    from rota.cli.database import database

    with _app(target, url) if needs_app else database(url) as rota:
        rota.cron.change(name, **options)
    if as_json:
        say_json({"entry": name, "changed": True})
    else:
        say(f"cron entry {harmless(name)} is changed")


@cron.command()
@click.argument("name", type=Name("cron"))
@url_option
@json_option
def remove(*, name: str, url: str | None, as_json: bool) -> None:
    """Remove an entry. An entry from code comes back when a worker starts: pause it instead.

    \b
    Example:
      rota cron remove nightly
    """
    from rota.cli.database import database

    with database(url) as rota:
        rota.cron.remove(name)
    if as_json:
        say_json({"entry": name, "removed": True})
    else:
        say(f"cron entry {harmless(name)} is removed")


@cron.command()
@click.argument("name", type=Name("cron"))
@url_option
@json_option
def pause(*, name: str, url: str | None, as_json: bool) -> None:
    """Make no jobs of an entry until it is resumed. Restarts and deploys do not resume it.

    \b
    Example:
      rota cron pause nightly
    """
    from rota.cli.database import database

    with database(url) as rota:
        changed = rota.cron.pause(name)
    if as_json:
        say_json({"entry": name, "paused": True, "changed": changed})
    else:
        say(f"cron entry {harmless(name)} {'is paused' if changed else 'was already paused'}")


@cron.command()
@click.argument("name", type=Name("cron"))
@url_option
@json_option
def resume(*, name: str, url: str | None, as_json: bool) -> None:
    """Make jobs of an entry again, but not of the times at which it was paused.

    \b
    Example:
      rota cron resume nightly
    """
    from rota.cli.database import database

    with database(url) as rota:
        changed = rota.cron.resume(name)
    if as_json:
        say_json({"entry": name, "paused": False, "changed": changed})
    else:
        say(f"cron entry {harmless(name)} {'is resumed' if changed else 'was not paused'}")


@cron.command()
@click.argument("name", type=Name("cron"))
@url_option
@json_option
def run(*, name: str, url: str | None, as_json: bool) -> None:
    """Enqueue a job of an entry now, paused or not; its due times stay as they are.

    If a unique task has a job already, that job is named.

    \b
    Example:
      rota cron run nightly
    """
    from rota.cli.database import database

    with database(url) as rota:
        job = rota.cron.run(name)
    if as_json:
        say_json({"entry": name, "job": job.id, "placing": job.placing.value})
        return
    done = {
        Placing.CREATED: "is enqueued",
        Placing.REPLACED: "was already there, and is replaced",
        Placing.SKIPPED: "is already there: nothing was enqueued",
    }
    say(f"job {job.id} of cron entry {harmless(name)} {done[job.placing]}")


# What the commands share ------------------------------------------------------------------------


@contextmanager
def _app(target: str | None, url: str | None) -> Iterator["Rota"]:
    """The app that has the task, on its own database or that of `--url`."""
    from rota import Rota
    from rota.cli.database import database
    from rota.cli.find_app import find_the_app

    rota = find_the_app(target, click.get_current_context().find_object(Rota))
    if url is not None:
        rota.use(url)
    with database(rota.url), rota:
        yield rota


def _args(text: str | None) -> Any:
    """The args of a task: a JSON object, or a JSON array of positional args."""
    import msgspec

    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        message = f"--args: {error}; write JSON, such as '{{\"n\": 1}}'"
        raise Failure(message, USAGE) from error
    if not isinstance(found, dict | list):
        message = "--args: write a JSON object of keyword arguments, or a JSON array"
        raise Failure(message, USAGE)
    return found
