"""Where databases are made: on given servers, or on private ones."""

import contextlib
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers import MariaDBServer, PostgresServer, RedisServer
from rota_lab.databases import Connection, Database, kind
from rota_lab.location import Location

if TYPE_CHECKING:
    from rota.measure.servers.owner import PrivateServer

REDIS = "redis"

SCHEMES = {
    "postgresql": Database.POSTGRES.value,
    "postgres": Database.POSTGRES.value,
    "mariadb": Database.MARIADB.value,
    "mysql": Database.MARIADB.value,
    "sqlite": Database.SQLITE.value,
    "redis": REDIS,
    "rediss": REDIS,
    "unix": REDIS,
}


class Servers:
    """Servers by kind; use in a `with` block, which ends the private ones.

    Args:
        given: URLs, or names of kinds for private servers. If empty, every kind has a private
            server, which is started when it is first needed.

    Raises:
        ConfigError: The lab does not know a URL, or there are two of a kind.
    """

    def __init__(self, given: Sequence[str] = ()) -> None:
        self._urls: dict[str, str | None] = {}
        for text in given:
            name, url = _read(text)
            if name in self._urls:
                raise ConfigError(f"--database names two of {name}; one of each kind is enough")
            self._urls[name] = url
        self._stack = contextlib.ExitStack()
        self._missing: dict[str, str] = {}
        self.used: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def databases(self) -> frozenset[Database]:
        """The kinds that may be used."""
        named = {database for database in Database if database in self._urls}
        return frozenset(named or Database)

    def missing(self, database: Database, *, redis: bool) -> str | None:
        """Why there is no database of that kind; starts private servers.

        Raises:
            ConfigError: A given server cannot be used.
            StoreUnavailable: A given server cannot be reached.
        """
        for name in (database.value, *([REDIS] if redis else [])):
            try:
                self._url(name)
            except (ConfigError, StoreUnavailable) as error:
                if self._urls.get(name) is not None:
                    raise
                return str(error)
        return None

    def connect(self, database: Database) -> Connection:
        """Connect to the server itself, to ask what it can do.

        Raises:
            ConfigError: There is no such server.
            StoreUnavailable: The server is gone.
        """
        return kind(database).connect(self._url(database.value))

    @contextlib.contextmanager
    def fresh(self, database: Database, *, redis: bool = False) -> Iterator[Location]:
        """An empty database until the end of the block.

        Raises:
            ConfigError: There is no server, or it refuses.
            StoreUnavailable: The server is gone.
        """
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(kind(database).fresh(self._url(database.value)))
            if not redis:
                yield Location(database, url)
                return
            prefix = f"rota-lab-{secrets.token_hex(4)}:"
            stack.callback(_remove_keys, self._url(REDIS), prefix)
            yield Location(database, url, self._url(REDIS), prefix)

    def facts(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Versions and settings of all servers that were used."""
        versions: dict[str, str] = {}
        settings: dict[str, str] = {}
        several = len(self.used) > 1
        for name, url in self.used.items():
            # A server that was lost meanwhile is left out.
            with contextlib.suppress(StoreUnavailable):
                found, its = _redis_facts(url) if name == REDIS else kind(Database(name)).facts(url)
                versions |= found
                settings |= {f"{name} {key}" if several else key: its[key] for key in its}
        return versions, settings

    def _url(self, name: str) -> str:
        if name in self._missing:
            raise ConfigError(self._missing[name])
        if name not in self.used:
            try:
                url = self._urls.get(name) or self._start(name)
                _check(name, url)
            except (ConfigError, StoreUnavailable) as error:
                self._missing[name] = str(error)
                raise
            self.used[name] = url
        return self.used[name]

    def _start(self, name: str) -> str:
        if name == Database.SQLITE:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-lab-"))
            return f"sqlite:///{folder}/lab.db"
        server: PrivateServer
        match name:
            case Database.POSTGRES:
                server = PostgresServer.start()
            case Database.MARIADB:
                server = MariaDBServer.start()
            case _:
                server = RedisServer.start()
        return self._stack.enter_context(server).url


def _read(given: str) -> tuple[str, str | None]:
    """The kind that a URL or a name means, and the URL."""
    if given in {*Database, REDIS}:
        return given, None
    scheme = given.partition(":")[0]
    if "://" not in given or scheme not in SCHEMES:
        shown = re.sub(r"//.*@", "//…@", given)
        raise ConfigError(
            f"the lab does not know the database {shown!r}; use postgresql://…, mariadb://…, "
            "sqlite:///file.db or redis://…; or postgres, mariadb, sqlite, redis for a private server"
        )
    return SCHEMES[scheme], given


def _check(name: str, url: str) -> None:
    """Fail now, and not in the middle, where a server cannot be reached."""
    if name == REDIS:
        _redis(url).close()
    elif name != Database.SQLITE:
        kind(Database(name)).connect(url).close()


def _redis(url: str) -> Any:
    import redis

    client = redis.Redis.from_url(url, socket_connect_timeout=10)
    try:
        client.ping()
    except redis.RedisError as error:
        raise StoreUnavailable(f"Redis cannot be reached: {error}") from error
    return client


def _redis_facts(url: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    import importlib.metadata

    with contextlib.closing(_redis(url)) as client:
        version = client.info("server")["redis_version"]
        settings = {name: client.config_get(name).get(name, "") for name in ("save", "appendonly")}
    return {"redis": version, "redis-py": importlib.metadata.version("redis")}, settings


def _remove_keys(url: str, prefix: str) -> None:
    with contextlib.suppress(StoreUnavailable), contextlib.closing(_redis(url)) as client:
        for key in client.scan_iter(match=f"{prefix}*"):
            client.delete(key)
