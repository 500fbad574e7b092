"""Nothing is committed by mistake: an enqueue before the kit has a connection is refused.

A call with `conn=` goes where it says.
"""

from typing import Any

from rota.app.app import Rota
from rota.app.task import EnqueueCall
from rota.errors import ConfigError
from rota.store.url import shown
from rota.testing.frames import hidden

__tracebackhide__ = hidden


class Guard:
    """Stands around the enqueues of an app, as its innermost middleware, until `end`."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        app.middleware.enqueueing += [self._around, self._aaround]

    def end(self) -> None:
        """Let everything pass again."""
        for each in (self._around, self._aaround):
            self._app.middleware.enqueueing.remove(each)

    def _around(self, call: EnqueueCall, call_next: Any) -> Any:
        self._check(call)
        return call_next(call)

    async def _aaround(self, call: EnqueueCall, call_next: Any) -> Any:
        self._check(call)
        return await call_next(call)

    def _check(self, call: EnqueueCall) -> None:
        if call.conn is None:
            message = (
                f"rota_test has no connection yet, so this job would be committed to {shown(self._app.url)}: call "
                "rota_test.use(connection_or_session) first, override the fixture rota_connection, or enqueue "
                "inside rota_test.committed()"
            )
            raise ConfigError(message)
