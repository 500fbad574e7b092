"""Servers for the lab's tests."""

from collections.abc import Callable

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Trial
from rota_lab.servers import Servers
from rota_lab.strategy import strategy


@pytest.fixture
def server_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """The URL of a server of some kind; the test is skipped where there is none."""

    def find(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('lab')}/lab.db"
        url: str = request.getfixturevalue(f"{kind}_url")
        return url

    return find


@pytest.fixture
def trial(server_url: Callable[[str], str]) -> Callable[..., Trial]:
    """A strategy on a database, ready to be tried."""

    def make(name: str, database: Database, **settings: float) -> Trial:
        design = strategy(name)
        kinds = [database.value, *(["redis"] if design.redis else [])]
        return Trial(design, database, settings, Servers([server_url(kind) for kind in kinds]))

    return make
