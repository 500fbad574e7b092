"""`rota dashboard`: the pages of the dashboard, from a server of its own."""

import os
from typing import Any

import click

from rota.cli.options import ListenOn, url_option
from rota.terminal.output import json_option

PASSWORD = "ROTA_DASHBOARD_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable with the password."""


@click.command()
@click.option(
    "--listen", type=ListenOn(), default="127.0.0.1:8200", show_default=True, metavar="[HOST:]PORT",
    help="Where to listen; a port of this machine alone, unless a host is given.",
)  # fmt: skip
@url_option
@json_option
def dashboard(*, listen: Any, url: str | None, as_json: bool) -> None:
    """Look after jobs in a browser: queues, jobs, workers, and why a job does not run.

    It needs rota[dashboard]. Other machines do not reach it unless --listen names a host. Then it can only be
    read, unless the variable ROTA_DASHBOARD_PASSWORD has a password, which the browser asks for (user: rota).

    \b
    Examples:
      rota dashboard --url postgresql:///shop
      ROTA_DASHBOARD_PASSWORD=… rota dashboard --listen 0.0.0.0:8200
    """
    from rota.cli.database import database
    from rota.cli.serving import serve
    from rota.dashboard.standalone import guarded
    from rota.service.web import loopback

    password = os.environ.get(PASSWORD) or None
    with database(url) as rota:
        warning = f"Others can read it and change nothing, unless {PASSWORD} is set."
        open_ = password is None and not loopback(listen.host)
        app = guarded(rota, listen.host, password)
        serve(app, listen, "/", warning=warning if open_ else "", as_json=as_json)
