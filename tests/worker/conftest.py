"""An app for each test, on both stores."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rota import Rota

if TYPE_CHECKING:
    from rota.store.protocol import Store


@pytest.fixture
def app(store: "Store", store_url: str) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    del store  # it made the tables
    with Rota(store_url) as app:
        yield app
