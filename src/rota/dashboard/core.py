"""From a request to its response, the same under every framework.

The order is fixed: may the request see anything, is there such a route, has it the route's right,
does a change come from a page of this host; only then is the page called. Skins check nothing.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, Protocol
from urllib.parse import quote

from rota.dashboard import rendering
from rota.dashboard.access import Access, Right
from rota.dashboard.looks import Looks
from rota.dashboard.message import Moved, NotThere, Page, Refused, Request, Response
from rota.dashboard.pages import ROUTES
from rota.dashboard.routes import C, Call, Route, find
from rota.dashboard.safety import HEADERS, same_origin
from rota.errors import ConfigError, FlowNotFound, JobNotFound, RotaError, StoreUnavailable

if TYPE_CHECKING:
    from rota.app.app import Rota

logger = logging.getLogger("rota")


class Answers(Protocol):
    """What a skin needs: answers about one database, or about several."""

    def answer(self, request: Request) -> Response:
        """The response to a request; whatever happens, it has the headers that keep it safe."""
        ...

    def with_slash(self, root: str) -> Response:
        """To the first page, for a request to the mount itself."""
        ...

    def live(self, request: Request) -> bool:
        """Whether the path is of a page with a part that changes while it is open."""
        ...

    def forget(self) -> None:
        """Look anew when asked next."""
        ...


class Answering(Generic[C]):
    """Answers requests by the pages of a table.

    Args:
        routes: The table, which is an attribute, too.
        call: What a page gets for a request with such parts of its path.
        read_only: Whether the database can only be read.
        changed: Called when something was done.
    """

    def __init__(
        self,
        routes: Sequence[Route[C]],
        call: Callable[[Request, dict[str, str]], C],
        *,
        read_only: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self.routes = routes
        self._call = call
        self._read_only = read_only
        self._changed = changed

    def answer(self, request: Request) -> Response:
        """The response to a request; whatever happens, it has the headers that keep it safe."""
        try:
            found = self._answer(request)
        except Exception:
            # A bug: the page says so, and the log has the reason.
            logger.exception("the dashboard failed at %s %s", request.method, request.path)
            found = self._refused(
                request,
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "This page failed; the log of the program says why.",
            )
        body = b"" if request.method == "HEAD" else found.body
        return replace(found, body=body, headers={**HEADERS, **found.headers})

    def with_slash(self, root: str) -> Response:
        """To the first page, for a request to the mount: relative links need its last slash."""
        location = f"{quote(root.rpartition('/')[2])}/"
        return Response(HTTPStatus.PERMANENT_REDIRECT, headers={**HEADERS, "location": location})

    def live(self, request: Request) -> bool:
        """Whether the path is of a page with a part that changes while it is open."""
        found = find(self.routes, "GET", request.path)
        return isinstance(found, tuple) and found[0].live

    def _answer(self, request: Request) -> Response:
        if not request.access.may(Right.READ):
            return self._refused(request, HTTPStatus.FORBIDDEN, "You may not see this dashboard.")
        found = find(self.routes, request.method, request.path)
        if not isinstance(found, tuple):
            if not found:
                return self._refused(request, HTTPStatus.NOT_FOUND, "There is no such page.")
            refused = self._refused(
                request, HTTPStatus.METHOD_NOT_ALLOWED, "This page does not accept such a request."
            )
            return replace(refused, headers={**refused.headers, "allow": ", ".join(sorted(found))})
        route, parts = found
        request = replace(request, access=self._possible(request.access))
        if not request.access.may(route.right):
            message = f"You may look, but this needs the right “{route.right}”."
            return self._refused(request, HTTPStatus.FORBIDDEN, message)
        if request.changes and not same_origin(request.headers):
            message = (
                "This request does not come from a page of this dashboard, so nothing was done. A program "
                "sends the header Sec-Fetch-Site: same-origin."
            )
            return self._refused(request, HTTPStatus.FORBIDDEN, message)
        return self._called(request, route, parts)

    def _possible(self, access: Access) -> Access:
        """What of these rights the database allows."""
        if access == access.looking():
            return access
        try:
            return access.looking() if self._read_only() else access
        except RotaError:
            return access.looking()

    def _called(self, request: Request, route: Route[C], parts: dict[str, str]) -> Response:
        try:
            answer = route.page(self._call(request, parts))
        except (NotThere, Refused, RotaError) as error:
            return self._refused(request, _status(error), str(error))
        finally:
            if request.changes:
                # The next page shows what was done, and not the second before.
                self._changed()
        match answer:
            case Response():
                return answer
            case Moved():
                return rendering.moved(request, answer)
            case Page():
                return rendering.response(request, answer, live=route.live)

    def _refused(self, request: Request, status: HTTPStatus, message: str) -> Response:
        data = {"error": message}
        page = Page("refused.html", status.phrase, data, {"code": status.value}, status=status)
        return rendering.response(request, page, live=False)


class Core(Answering[Call]):
    """Answers requests about one app's database.

    Args:
        app: Whose database; its tasks need not be known.
        every: Seconds after which the database is looked at again for what all pages share.
    """

    def __init__(self, app: "Rota", *, every: float = 1.0) -> None:
        self.app = app
        self.looks = Looks(app.database, every)
        super().__init__(
            ROUTES,
            lambda request, parts: Call(app, self.looks, request, parts),
            read_only=self.looks.read_only,
            changed=self.looks.forget,
        )

    def forget(self) -> None:
        """Look anew when asked next."""
        self.looks.forget()


def _status(error: Exception) -> HTTPStatus:
    """What an error that a page has raised means."""
    match error:
        case NotThere() | JobNotFound() | FlowNotFound():
            return HTTPStatus.NOT_FOUND
        case Refused():
            return HTTPStatus.FORBIDDEN
        case ConfigError():
            return HTTPStatus.BAD_REQUEST
        case StoreUnavailable():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            return HTTPStatus.CONFLICT
