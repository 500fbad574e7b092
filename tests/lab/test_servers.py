"""Where the lab makes databases, and that it removes what it has made."""

from collections.abc import Callable
from contextlib import closing
from typing import LiteralString

import pytest
import redis

from rota.errors import StoreUnavailable
from rota_lab.databases import Database, kind
from rota_lab.servers import Servers, _check

NAMES: dict[Database, LiteralString] = {
    Database.POSTGRES: "select datname from pg_database",
    Database.MARIADB: "select schema_name from information_schema.schemata",
}


@pytest.mark.parametrize("database", Database)
def test_databases_are_removed(database: Database, server_url: Callable[[str], str]) -> None:
    """Also with open connections."""
    url = server_url(database)
    with Servers([url]) as servers:
        with servers.fresh(database) as location:
            left_open = location.connect()
            left_open.execute("create table queue (job int)")
        left_open.close()
        with servers.fresh(database) as location, closing(location.connect()) as connection:
            # Another one, and empty.
            connection.execute("create table queue (job int)")
    if database in NAMES:
        name = location.url.partition("?")[0].rpartition("/")[2]
        with closing(kind(database).connect(url)) as connection:
            names = [row[0] for row in connection.rows(NAMES[database])]
        assert name not in names


def test_keys_are_removed(redis_url: str, server_url: Callable[[str], str]) -> None:
    """Those with the prefix, and no others."""
    client = redis.Redis.from_url(redis_url)
    with closing(client), Servers([server_url("sqlite"), redis_url]) as servers:
        client.set("theirs", 1)
        with servers.fresh(Database.SQLITE, redis=True) as location:
            assert location.redis == redis_url
            assert location.prefix
            client.set(f"{location.prefix}queue", 1)
            assert {"redis", "sqlite"} <= set(servers.facts()[0])
        assert client.keys(f"{location.prefix}*") == []
        assert client.delete("theirs") == 1


@pytest.mark.parametrize("name", ["postgres", "mariadb", "redis"])
def test_private_servers_end(name: str, server_url: Callable[[str], str]) -> None:
    """One that is started by name is gone after the block."""
    if name != "postgres":
        server_url(name)  # skips where there is none
    database = Database.SQLITE if name == "redis" else Database(name)
    with Servers([name, database] if name == "redis" else [name]) as servers:
        assert servers.missing(database, redis=name == "redis") is None
        url = servers.used[name]
    with pytest.raises(StoreUnavailable):
        _check(name, url)
