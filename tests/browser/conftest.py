"""A browser that finds nothing to complain about, a test's own app, and a shop to look at."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from rota import Rota
from rota.dashboard import asgi
from tests.browser.chromium import Chromium
from tests.browser.person import Person
from tests.browser.serving import under_asgi, under_wsgi
from tests.browser.shop import Shop, shop

Serve = Callable[[Rota], AbstractContextManager[str]]


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Chromium]:
    """A wide, light window with scripts; at the end no policy was broken and nothing was logged."""
    chromium.scripts(on=True)
    chromium.hide(hidden=False)
    chromium.appear()
    chromium.leave()
    chromium.complaints()
    yield chromium
    chromium.leave()
    assert chromium.complaints() == []


@pytest.fixture
def app(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    shutil.copyfile(migrated_sqlite, tmp_path / "rota.db")
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        yield app


@pytest.fixture
def serve(browser: Chromium, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serves an app under ASGI, with streams that look every 50 ms.

    The browser leaves before the server ends.
    """
    monkeypatch.setattr(asgi, "EVERY", 0.05)
    return partial(_served, browser, under_asgi)


@pytest.fixture(params=[under_asgi, pytest.param(under_wsgi, marks=pytest.mark.large)])
def person(
    request: pytest.FixtureRequest, browser: Chromium, app: Rota, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Person]:
    """Someone in front of the app's dashboard, under ASGI, then under WSGI."""
    monkeypatch.setattr(asgi, "EVERY", 0.05)
    with _served(browser, request.param, app) as address:
        yield Person(browser, address)


@pytest.fixture(params=[under_asgi, under_wsgi])
def serve_both(
    request: pytest.FixtureRequest, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> Serve:
    """The same under ASGI, then under WSGI."""
    monkeypatch.setattr(asgi, "EVERY", 0.05)
    return partial(_served, browser, request.param)


@contextmanager
def _served(browser: Chromium, kind: Serve, app: Rota) -> Iterator[str]:
    with kind(app) as address:
        yield address
        browser.leave()


@pytest.fixture(scope="session")
def known(
    tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path
) -> Iterator[tuple[Shop, str]]:
    """The shop, and the address of its dashboard; nothing is to be changed there."""
    file = tmp_path_factory.mktemp("shop") / "rota.db"
    shutil.copyfile(migrated_sqlite, file)
    with shop(f"sqlite:///{file}") as found, under_asgi(found.app) as address:
        yield found, address
