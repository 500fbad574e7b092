"""A browser that finds nothing to complain about, an app of its own for a test, and a shop to look at."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import Rota
from rota.dashboard import asgi
from tests.browser.chromium import Chromium
from tests.browser.serving import Serving, under_asgi, under_wsgi
from tests.browser.shop import Shop, shop


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Chromium]:
    """A wide, light window in which scripts run; at the end nothing has gone against a policy, nothing was logged."""
    chromium.scripts(on=True)
    chromium.hide(hidden=False)
    chromium.appear()
    chromium.open("about:blank")
    chromium.complaints()
    yield chromium
    assert chromium.complaints() == []
    # So that no stream of the page goes on.
    chromium.open("about:blank")


@pytest.fixture
def app(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    shutil.copyfile(migrated_sqlite, tmp_path / "rota.db")
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        yield app


@pytest.fixture(params=[under_asgi, under_wsgi])
def serving(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Serves an app, by both kinds of servers; streams look every 50 ms."""
    monkeypatch.setattr(asgi, "EVERY", 0.05)
    found: Serving = request.param
    return found


@pytest.fixture(scope="session")
def known(
    tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path
) -> Iterator[tuple[Shop, str]]:
    """The shop, and the address of its dashboard; nothing is to be changed there."""
    file = tmp_path_factory.mktemp("shop") / "rota.db"
    shutil.copyfile(migrated_sqlite, file)
    with shop(f"sqlite:///{file}") as found, under_asgi(found.app) as address:
        yield found, address
