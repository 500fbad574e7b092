"""`rota jobs signal`: tell a job something for which it waits."""

import click
import msgspec

from rota.cli.options import ID, url_option
from rota.terminal.exits import FAILED, complain
from rota.terminal.output import json_option, say, say_json


@click.command("signal")
@click.argument("job", metavar="ID", type=ID)
@click.argument("name", metavar="NAME")
@click.argument("payload", metavar="[JSON]", default="null")
@click.option(
    "--id",
    "told",
    metavar="TEXT",
    help="Of several signals with the same name and id, only one counts.",
)
@url_option
@json_option
def signal(
    *, job: int, name: str, payload: str, told: str | None, url: str | None, as_json: bool
) -> None:
    """Send a signal to a job that waits for it with ctx.wait_for, now or later.

    \b
    Examples:
      rota jobs signal 4711 approved
      rota jobs signal 4711 approved '{"by": "Ada"}' --id ticket-12
    """
    from rota import ConfigError, JobEnded, JobNotFound
    from rota.cli.database import database

    try:
        value = msgspec.json.decode(payload)
    except msgspec.DecodeError as error:
        message = f"not JSON: {error}; text needs double quotes, such as '\"yes\"'"
        raise click.BadParameter(message, param_hint="JSON") from error
    with database(url) as rota:
        try:
            rota.job(job).signal(name, value, id=told)
        except ConfigError as error:
            raise click.UsageError(str(error)) from error
        except (JobNotFound, JobEnded) as error:
            complain(str(error))
            raise click.exceptions.Exit(FAILED) from error
    if as_json:
        say_json({"job": job, "signal": name})
    else:
        say(f"job {job} has the signal {name}")
