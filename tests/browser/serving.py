"""The dashboard of an app on a port of this machine, in a thread.

Under ASGI uvicorn serves it, under WSGI its own server.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from rota import Rota
from rota.app.shards import Shards
from rota.dashboard.access import Access
from rota.dashboard.mounting import Dashboard
from rota.dashboard.several import core_of
from rota.service.web import Server
from tests.fixtures.workers import LONG, until


def made(app: Rota | Shards, access: Access | None) -> Dashboard:
    """The dashboard of an app, which looks anew for each request."""
    dashboard = Dashboard(app, access or Access.all())
    dashboard.core = core_of(app, every=0.0)
    return dashboard


@contextmanager
def under_asgi(app: Rota | Shards, access: Access | None = None) -> Iterator[str]:
    """Serve it; gives its address, without the last slash."""
    config = uvicorn.Config(
        made(app, access), port=0, log_level="critical", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        until(lambda: server.started, "uvicorn to start")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        # Streams of pages that are open would go on.
        server.should_exit = server.force_exit = True
        thread.join(LONG)


@contextmanager
def under_wsgi(app: Rota | Shards, access: Access | None = None) -> Iterator[str]:
    """Serve it; gives its address, without the last slash."""
    server = Server("127.0.0.1", 0, made(app, access).wsgi)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(LONG)
        server.server_close()
