"""`rota dashboard`: the pages of the dashboard, from a server of its own."""

import os
from typing import Any

import click

from rota.cli.options import ListenOn, urls_option
from rota.terminal.output import json_option

PASSWORD = "ROTA_DASHBOARD_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable with the password."""


@click.command()
@click.option(
    "--listen", type=ListenOn(), default="127.0.0.1:8200", show_default=True, metavar="[HOST:]PORT",
    help="Where to listen; without a host, only this machine can connect.",
)  # fmt: skip
@urls_option
@json_option
def dashboard(*, listen: Any, url: str | None, as_json: bool) -> None:
    """Look after jobs in a browser: queues, jobs, workers, and why a job does not run.

    It needs rota[dashboard]. Other machines cannot reach it unless --listen names a host. Then it
    is read-only, unless the variable ROTA_DASHBOARD_PASSWORD holds a password, which the browser
    asks for (user: rota).

    If ROTA_SHARDS names several databases, there is a page of all and the pages of each; --shard
    takes one.

    \b
    Examples:
      rota dashboard --url postgresql:///shop
      ROTA_DASHBOARD_PASSWORD=… rota dashboard --listen 0.0.0.0:8200
    """
    from rota.cli.database import database_or_shards
    from rota.cli.serving import serve
    from rota.dashboard.standalone import guarded
    from rota.service.web import loopback

    password = os.environ.get(PASSWORD) or None
    with database_or_shards(url) as rota:
        warning = f"Anyone who can reach it can read it, but change nothing. Set {PASSWORD} to require a password."
        open_ = password is None and not loopback(listen.host)
        app = guarded(rota, listen.host, password)
        serve(app, listen, "/", warning=warning if open_ else "", as_json=as_json)
