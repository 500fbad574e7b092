"""An app for each test, and one task that most of them enqueue."""

from collections.abc import Iterator
from typing import Any

import pytest

from rota import Rota, Task
from rota.store.protocol import Store


@pytest.fixture
def app(store: Store, store_url: str) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    del store  # it made the tables
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def send(app: Rota) -> Task[..., Any, Any]:
    """A task that takes a number; nobody runs it."""

    @app.task(name="send")
    def send(number: int) -> None:
        del number

    return send
