"""URLs: what libpq understands, and the one parameter that is Rota's own."""

from contextlib import closing
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from rota.errors import ConfigError
from rota.store.opening import open_store
from rota.store.postgres import PostgresStore
from tests.store.postgres.database import Database


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
@pytest.mark.parametrize("more", [{}, {"pooler": "transaction"}])
def test_a_url_without_a_host(db: Database, scheme: str, more: dict[str, str]) -> None:
    """Where libpq finds the server by itself or by parameters; both spellings of the scheme."""
    parameters = {key: str(value) for key, value in conninfo_to_dict(db.url).items()}
    name = parameters.pop("dbname")
    url = f"{scheme}:///{name}?{urlencode(parameters | more, quote_via=quote)}"
    with closing(open_store(url)) as store, closing(store.connect()) as connection:
        assert connection.run(store.schema_version()) == max(store.migrations())
        assert connection.run(store.queues()) == []


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("postgresql:///shop", "postgresql:///shop"),
        ("postgres:///shop?pooler=transaction", "postgres:///shop"),
        ("postgresql://h/shop?a=1&pooler=transaction&b=x%20y", "postgresql://h/shop?a=1&b=x%20y"),
        ("postgresql://h/shop?options=a+b", "postgresql://h/shop?options=a+b"),
    ],
)
def test_what_the_driver_is_given(url: str, read: str) -> None:
    """All but Rota's own parameter stays as it was written."""
    assert PostgresStore(url).connect().url == read


@pytest.mark.parametrize(
    "url", ["postgresql://h:x/shop", "postgres:///shop?pooler=session", "postgresql://h/?pooler="]
)
def test_refused(url: str) -> None:
    """A URL that cannot be meant is refused before anybody connects."""
    with pytest.raises(ConfigError):
        PostgresStore(url)


@pytest.mark.parametrize("url", ["postgresql+psycopg://h/shop", "POSTGRES://h/shop", "mysql://h"])
def test_another_scheme(url: str) -> None:
    """The message says what to write."""
    with pytest.raises(ConfigError, match=r"use postgresql://user@host/database"):
        open_store(url)
