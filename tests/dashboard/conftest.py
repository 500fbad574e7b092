"""An app for each test, its dashboard, and a browser of a kind."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from rota import Rota, WorkerConfig
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request, Response
from rota.store.protocol import Store
from rota.worker import Worker

Get = Callable[..., Response]


@pytest.fixture
def app(store: Store, store_url: str) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    del store  # it made the tables
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def core(app: Rota) -> Core:
    """Its dashboard, which looks anew for each request."""
    return Core(app, every=0.0)


@pytest.fixture
def get(core: Core) -> Get:
    """Asks for a page, with everything allowed unless it is said otherwise."""

    def get(
        path: str, *, access: Access | None = None, json: bool = False, **query: str
    ) -> Response:
        headers: Mapping[str, str] = {"accept": "application/json"} if json else {}
        access = Access.all() if access is None else access
        return core.answer(Request("GET", path, access, query, headers))

    return get


@pytest.fixture
def page(get: Get) -> Callable[..., str]:
    """The text of a page that is there."""

    def page(path: str, **more: Any) -> str:
        response = get(path, **more)
        assert response.status == 200, response.body
        return response.body.decode()

    return page


@pytest.fixture
def data(get: Get) -> Callable[..., Any]:
    """What a page gives to programs."""
    import msgspec

    def data(path: str, **more: Any) -> Any:
        response = get(path, json=True, **more)
        assert response.headers["content-type"] == "application/json"
        return msgspec.json.decode(response.body)

    return data


def drain(app: Rota) -> None:
    """Run the jobs there are."""
    Worker(app, WorkerConfig(drain=True)).run()
