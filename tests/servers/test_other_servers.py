"""Private MariaDB and Redis servers: reached by their own account alone, and gone with their owner."""

import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers import MariaDBServer, RedisServer
from rota_lab.databases import Database
from rota_lab.location import Location
from tests.fixtures.required import required
from tests.fixtures.workers import LONG, until

pytestmark = pytest.mark.large

KINDS: dict[str, type[MariaDBServer | RedisServer]] = {
    "mariadb": MariaDBServer,
    "redis": RedisServer,
}

OWNER = """
import json, sys
from rota.measure.servers import MariaDBServer, RedisServer

server = {"mariadb": MariaDBServer, "redis": RedisServer}[sys.argv[1]].start()
print(json.dumps({"url": server.url, "pid": server.pid}), flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A server that can be started here."""
    name: str = request.param
    try:
        KINDS[name].start().stop()
    except ConfigError as error:
        if name in required():
            pytest.fail(str(error))
        pytest.skip(str(error))
    return name


def socket_of(url: str) -> Path:
    """Where the server listens."""
    parts = urlsplit(url)
    return Path(parse_qs(parts.query).get("unix_socket", [parts.path])[0])


def accepts(path: Path) -> bool:
    """Whether a server listens there."""
    with socket.socket(socket.AF_UNIX) as trying:
        try:
            trying.connect(str(path))
        except OSError:
            return False
        return True


def test_life(kind: str) -> None:
    """It runs on a socket in a private folder, listens nowhere else, and leaves nothing."""
    with KINDS[kind].start() as server:
        path = socket_of(server.url)
        assert accepts(path)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        process = psutil.Process(server.pid)
        assert [
            connection
            for connection in process.net_connections()
            if connection.status == "LISTEN" and connection.laddr.port
        ] == []
        if os.geteuid() == 0:
            assert process.username() == "nobody"
        assert server.version[0].isdigit()
    assert not process.is_running()
    assert not path.parent.parent.exists()
    server.stop()  # once more does no harm
    with pytest.raises(StoreUnavailable, match=f"{server.name} server is stopped"):
        server.restart()


def test_restart(kind: str) -> None:
    """After a crash it starts again, on the same socket."""
    with KINDS[kind].start() as server:
        pid = server.pid
        psutil.Process(pid).kill()
        server.restart(mode="immediate")
        assert server.pid != pid
        assert accepts(socket_of(server.url))


def test_its_owner_is_killed(kind: str) -> None:
    """SIGKILL of the process that started it ends it, and removes its folder."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        said = json.loads(owner.stdout.readline())
        server = psutil.Process(said["pid"])
        owner.kill()
    server.wait(LONG)
    home = socket_of(said["url"]).parent.parent
    until(lambda: not home.exists(), "the folder to be removed")


def test_a_setting_that_it_refuses() -> None:
    """What the server says about it is in the error."""
    try:
        with pytest.raises(StoreUnavailable, match=r"(?s)MariaDB did not start.*no_such_setting"):
            MariaDBServer.start(settings={"no_such_setting": "1"})
    except ConfigError as error:
        pytest.skip(str(error))


def test_settings(mariadb_url: str) -> None:
    """Nothing is measured without durability."""
    with closing(Location(Database.MARIADB, mariadb_url).connect()) as connection:
        [row] = connection.rows(
            "select @@innodb_flush_log_at_trx_commit as flush, @@skip_networking as alone"
        )
    assert (row.flush, row.alone) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_missing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the programs the error says how to get them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("rota.measure.servers.binaries.FURTHER", ())
    with pytest.raises(ConfigError, match="make lab-servers"):
        KINDS[kind].start()
