"""The fixtures of the tests that look inside the PostgreSQL store."""

from collections.abc import Iterator

import psycopg
import pytest

from rota.store.postgres import clearing
from tests.store.postgres.database import Database, Raw


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is clear is truncated in the same round."""
    monkeypatch.setattr(clearing, "REST", 0.0)


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with Database(postgres_url) as database:
        # Copied from one that may be so old by now that its log would turn.
        database.sql("SELECT setval('rota.log_begun', extract(epoch FROM now())::int8)")
        yield database


@pytest.fixture
def held(db: Database) -> Iterator[Raw]:
    """A snapshot that is older than everything, in a transaction with an id."""
    raw = db.bare(name="held")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lane")
    yield raw
    assert raw.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
