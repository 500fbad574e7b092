"""The dashboard below a path of a Django project.

    path("rota/", include(dashboard(access=lambda request: …)))

`access` gets Django's request, with its user. Requests that change something are checked by the
dashboard itself, which needs no token, so Django's own check is left out for them.
"""

from collections.abc import Callable
from io import BytesIO

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from rota.contrib.django.app import rota
from rota.dashboard.access import Access, check_access, granted
from rota.dashboard.mounting import Dashboard


def dashboard(*, access: Access | Callable[[HttpRequest], Access]) -> list[URLPattern]:
    """The URLs of the dashboard, for `include`.

    Args:
        access: Who may do what: a function from the request to an `Access`, or one for all
            requests.

    Raises:
        ConfigError: `access` is neither, or `rota[dashboard]` is not installed.
    """
    checked = check_access(access)
    wsgi = Dashboard(rota, Access.none()).wsgi

    @csrf_exempt
    def view(request: HttpRequest, path: str) -> HttpResponse:
        found = checked if isinstance(checked, Access) else granted(checked(request))
        environ = {**request.META, "PATH_INFO": f"/{path}", "wsgi.input": BytesIO(request.body)}
        answer = wsgi.answer(environ, found)
        return HttpResponse(answer.body, status=answer.status.value, headers=dict(answer.headers))

    return [re_path(r"^(?P<path>.*)$", view, name="rota-dashboard")]
