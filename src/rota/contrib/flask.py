"""Rota in Flask: handlers run in an application context, and `flask rota …` is the command line.

rota = Rota()
rota_flask = RotaFlask(rota)

def create_app() -> Flask:
    app = Flask(__name__)
    rota_flask.init_app(app)
    return app
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from flask import Flask

from rota.app.app import Rota
from rota.app.context import BatchContext, Context
from rota.app.executor import Executor
from rota.contrib.forwarding import forwarded
from rota.errors import ConfigError

KEY = "ROTA_DATABASE_URL"
"""Of the application's config: the database with the jobs, where that is not said elsewhere."""


class RotaFlask:
    """Connects a Rota app with a Flask application.

    Each run of a handler, in a thread or on the event loop, has an application context of its own,
    which ends with it: `current_app`, `g` and Flask-SQLAlchemy's `db.session` work as in a request.
    Child processes (`executor="process"`) have none: push one there.

    Args:
        rota: The app whose tasks these are.
        app: The application; or give it to `init_app`, where it is made later.

    Raises:
        ConfigError: `rota` is not a Rota app, or its database cannot be that of the application's
            config.
    """

    def __init__(self, rota: Rota, app: Flask | None = None) -> None:
        if not isinstance(rota, Rota):
            message = (
                f"RotaFlask takes the rota.Rota first, not a {type(rota).__name__}; give it the Flask "
                "application second, RotaFlask(rota, app), or with init_app(app)"
            )
            raise ConfigError(message)
        self._rota = rota
        self._app: Flask | None = None
        rota.lifespan(name="flask")(self._begun)
        rota.around_run(self._in_thread)
        rota.around_run(self._on_loop)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Let handlers run in the context of this application from now on, and add `flask rota`.

        Its config may say where the jobs are: `ROTA_DATABASE_URL`.

        Raises:
            ConfigError: That URL cannot be used.
        """
        if KEY in app.config:
            self._rota.use(app.config[KEY])
        self._app = app
        app.extensions["rota"] = self._rota
        app.cli.add_command(forwarded(self._rota, "flask rota"))

    async def _begun(self) -> AsyncIterator[Flask]:
        """Keep a worker without an application from claiming: each attempt would fail."""
        yield self._application()

    def _in_thread(self, _: Context | BatchContext, call_next: Callable[[], Any]) -> Any:
        with self._application().app_context():
            return call_next()

    async def _on_loop(
        self, context: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]
    ) -> Any:
        # This is around the others as well, which do not run here.
        if self._rota.find_task(context.task).executor is not Executor.LOOP:
            return await call_next()
        with self._application().app_context():
            return await call_next()

    def _application(self) -> Flask:
        if self._app is None:
            message = (
                "a handler needs the Flask application, and RotaFlask has none; call init_app(app), or "
                "run `flask rota worker`, which makes the application first"
            )
            raise ConfigError(message)
        return self._app
