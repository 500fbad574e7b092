"""`rota metrics`: what Prometheus is told of a database."""

import os
from typing import Any

import click

from rota.cli.options import ListenOn, urls_option
from rota.terminal.output import json_option, say, say_json

PASSWORD = "ROTA_METRICS_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable with the password."""


@click.command()
@click.option(
    "--listen", type=ListenOn(), default="127.0.0.1:9464", show_default=True, metavar="[HOST:]PORT",
    help="Where to listen; without a host, only this machine can connect.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the metrics once, and exit.")
@urls_option
@json_option
def metrics(*, listen: Any, once: bool, url: str | None, as_json: bool) -> None:
    """Serve a database's metrics to Prometheus, at /metrics.

    They tell of queues, workers, cron, and what keeps space from being freed.

    It needs rota[prometheus]. One process is enough for a database, whatever the number of workers;
    it looks at the database at most once a second, and counts no jobs. Other machines cannot reach
    it unless --listen names a host. Then set the variable ROTA_METRICS_PASSWORD to require a
    password (user: rota) from Prometheus.

    If ROTA_SHARDS names several databases, it covers all of them, with the label shard; --shard
    takes one.

    \b
    Examples:
      rota metrics --url postgresql:///shop
      rota metrics --once | grep rota_jobs
      ROTA_METRICS_PASSWORD=… rota metrics --listen 0.0.0.0:9464
    """
    from rota.app.shards import Shards
    from rota.cli.database import database_or_shards
    from rota.cli.serving import serve
    from rota.errors import ConfigError
    from rota.service.web import Guard, loopback

    try:
        from rota.metrics.page import PATH, Metrics
    except ImportError as error:
        message = f"rota metrics needs {error.name}; install rota[prometheus]"
        raise ConfigError(message) from error
    with database_or_shards(url) as rota:
        page = Metrics(
            {name: shard.database for name, shard in rota.items()}
            if isinstance(rota, Shards)
            else rota.database
        )
        if once:
            if as_json:
                say_json({"samples": page.samples()})
            else:
                say(page.text()[0].decode().rstrip())
            return
        password = os.environ.get(PASSWORD) or None
        local = loopback(listen.host)
        warning = (
            ""
            if local or password
            else f"Anyone who can reach it can read it. Set {PASSWORD} to require a password."
        )
        app = Guard(page, local=local, password=password)
        serve(app, listen, PATH, warning=warning, as_json=as_json)
