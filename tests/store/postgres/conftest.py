"""The fixture of the tests that look inside the PostgreSQL store."""

from collections.abc import Iterator

import pytest

from tests.store.postgres.database import Database


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with Database(postgres_url) as database:
        yield database
