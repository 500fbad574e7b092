"""The dashboard on its own, for `rota dashboard`.

On loopback everything is allowed, to who reaches it: programs and people of this machine. Off
loopback a password is asked for, else the pages can only be read.
"""

from rota.app.app import Rota
from rota.app.shards import Shards
from rota.dashboard.access import Access
from rota.dashboard.mounting import Dashboard
from rota.dashboard.safety import HEADERS
from rota.service.web import Guard, loopback


def guarded(app: Rota | Shards, host: str, password: str | None) -> Guard:
    """The dashboard of an app as it is served on `host`.

    Raises:
        ConfigError: The extra is not installed.
    """
    trusted = loopback(host) or password is not None
    access = Access.all(who="rota dashboard") if trusted else Access.only("args")
    inner = Dashboard(app, access).wsgi
    return Guard(inner, local=loopback(host), password=password, headers=HEADERS)
