"""The dashboard of several databases: that of each below `shard/NAME/`, and one page about all of them.

Each shard's pages are those of one database, from a core of its own, which knows nothing of the
others. So links, rights and refusals are the same; the head of a page leads to the other shards.
"""

from dataclasses import replace

from rota.app.app import Rota
from rota.app.here import at
from rota.app.shards import Shards
from rota.dashboard import files
from rota.dashboard.access import Right
from rota.dashboard.core import Answering, Answers, Core
from rota.dashboard.message import Among, Request, Response
from rota.dashboard.pages.everything import CallOfAll, Everything
from rota.dashboard.routes import Route

SHARD = "/shard/"
"""Where the pages of the shards begin."""


def core_of(app: Rota | Shards, *, every: float = 1.0) -> Answers:
    """What answers requests about an app's database, or about all it has."""
    return Several(app, every=every) if isinstance(app, Shards) else Core(app, every=every)


class Several:
    """Answers requests about all databases of an app.

    Args:
        app: Whose databases; its tasks need not be known.
        every: Seconds after which each is looked at again.

    Attributes:
        cores: What answers for each shard.
    """

    def __init__(self, app: Shards, *, every: float = 1.0) -> None:
        self.cores = {name: Core(shard, every=every) for name, shard in app.items()}
        self._app = app
        self._names = tuple(app)
        everything = Everything({name: core.looks for name, core in self.cores.items()})
        self._all: Answering[CallOfAll] = Answering(
            (
                Route("GET", "/", Right.READ, everything.page, live=True),
                Route("GET", "/static/{name}", Right.READ, files.file),
            ),
            CallOfAll,
            # Nothing is changed here.
            read_only=lambda: True,
            changed=lambda: None,
        )

    def answer(self, request: Request) -> Response:
        """The response to a request; whatever happens, it has the headers that keep it safe."""
        name, core, inner = self._found(request)
        if core is None:
            return self._all.answer(inner)
        if not inner.path:
            return core.with_slash(request.path)
        with at(self._app[name].here):
            return core.answer(inner)

    def with_slash(self, root: str) -> Response:
        """To the first page, for a request to the mount itself."""
        return self._all.with_slash(root)

    def live(self, request: Request) -> bool:
        """Whether the path is of a page with a part that changes while it is open."""
        _, core, inner = self._found(request)
        return (core or self._all).live(inner)

    def forget(self) -> None:
        """Look anew when asked next."""
        for core in self.cores.values():
            core.forget()

    def _found(self, request: Request) -> tuple[str, Core | None, Request]:
        """A request's shard and what answers for it, if any; and the request as that sees it."""
        name, slash, path = request.path.removeprefix(SHARD).partition("/")
        core = self.cores.get(name) if request.path.startswith(SHARD) else None
        if core is None:
            return "", None, replace(request, among=Among("", self._names))
        return name, core, replace(request, path=slash + path, among=Among(name, self._names))
