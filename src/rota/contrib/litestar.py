"""Rota in Litestar: a plugin.

app = Litestar([...], plugins=[RotaPlugin(rota)])
"""

from click import Group
from litestar.config.app import AppConfig
from litestar.plugins import CLIPlugin, InitPlugin

from rota.app.app import Rota
from rota.config import WorkerConfig
from rota.contrib.forwarding import forwarded
from rota.contrib.starlette import web_lifespan


class RotaPlugin(InitPlugin, CLIPlugin):
    """Checks the database at startup, closes Rota's connections at shutdown, and adds `litestar rota`.

    Args:
        rota: The app whose jobs the application enqueues.
        worker: Whether, and how, a worker runs in the same process; see
            `rota.contrib.starlette.web_lifespan`. It starts after the application's own `lifespan`
            managers have begun and stops before they end.

    Raises:
        ConfigError: An argument has the wrong type.
    """

    def __init__(self, rota: Rota, *, worker: bool | WorkerConfig = False) -> None:
        self._rota = rota
        self._lifespan = web_lifespan(rota, worker=worker)

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        """Add the lifespan."""
        app_config.lifespan.append(self._lifespan)
        return app_config

    def on_cli_init(self, cli: Group) -> None:
        """Add the command."""
        cli.add_command(forwarded(self._rota, "litestar rota"))
