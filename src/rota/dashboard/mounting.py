"""What `Rota.dashboard` gives: an ASGI application, which has a WSGI application beside it."""

from functools import cached_property
from typing import TYPE_CHECKING

from rota.dashboard.access import check_access
from rota.errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from rota.app.app import Rota
    from rota.app.shards import Shards
    from rota.dashboard.asgi import Asgi
    from rota.dashboard.core import Answers
    from rota.dashboard.wsgi import Wsgi


class Dashboard:
    """The dashboard of an app with one database or several, to be mounted. Made by `Rota.dashboard`.

    It is an ASGI application itself; `wsgi` is a WSGI application.
    """

    def __init__(self, app: "Rota | Shards", access: object) -> None:
        self._access = check_access(access)
        try:
            from rota.dashboard.several import core_of
        except ImportError as error:
            raise _missing(error) from error
        self.core: Answers = core_of(app)

    @cached_property
    def wsgi(self) -> "Wsgi":
        """The same under WSGI; `access` gets the environ."""
        from rota.dashboard.wsgi import Wsgi

        return Wsgi(self.core, self._access)

    @cached_property
    def _asgi(self) -> "Asgi":
        try:
            from rota.dashboard.asgi import Asgi
        except ImportError as error:
            raise _missing(error) from error
        return Asgi(self.core, self._access)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request under ASGI; `access` gets Starlette's request."""
        await self._asgi(scope, receive, send)


def _missing(error: ImportError) -> ConfigError:
    return ConfigError(f"the dashboard needs {error.name}; install rota[dashboard]")
