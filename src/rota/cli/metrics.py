"""`rota metrics`: what Prometheus is told of a database."""

import os
from typing import Any

import click

from rota.cli.options import ListenOn, url_option
from rota.terminal.output import json_option, say, say_json

PASSWORD = "ROTA_METRICS_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable with the password."""


@click.command()
@click.option(
    "--listen", type=ListenOn(), default="127.0.0.1:9464", show_default=True, metavar="[HOST:]PORT",
    help="Where to listen; a port of this machine alone, unless a host is given.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the metrics once, and exit.")
@url_option
@json_option
def metrics(*, listen: Any, once: bool, url: str | None, as_json: bool) -> None:
    """Tell Prometheus of a database, at /metrics: queues, workers, cron, and what keeps space from being freed.

    It needs rota[prometheus]. One of these is enough for a database, whatever the number of workers; it looks at the
    database once a second at the most, and counts no jobs. Other machines do not reach it unless --listen names a host;
    then Prometheus has to give the password (user: rota) that the variable ROTA_METRICS_PASSWORD has, if it has one.

    \b
    Examples:
      rota metrics --url postgresql:///shop
      rota metrics --once | grep rota_jobs
      ROTA_METRICS_PASSWORD=… rota metrics --listen 0.0.0.0:9464
    """
    from rota.cli.database import database
    from rota.cli.serving import serve
    from rota.errors import ConfigError
    from rota.service.web import Guard, loopback

    try:
        from rota.metrics.page import PATH, Metrics
    except ImportError as error:
        message = f"rota metrics needs {error.name}; install rota[prometheus]"
        raise ConfigError(message) from error
    with database(url) as rota:
        page = Metrics(rota.database)
        if once:
            if as_json:
                say_json({"samples": page.samples()})
            else:
                say(page.text()[0].decode().rstrip())
            return
        password = os.environ.get(PASSWORD) or None
        local = loopback(listen.host)
        warning = "" if local or password else f"Others can read it, unless {PASSWORD} is set."
        app = Guard(page, local=local, password=password)
        serve(app, listen, PATH, warning=warning, as_json=as_json)
