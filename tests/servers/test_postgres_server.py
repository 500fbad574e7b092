"""The private PostgreSQL server: its life, and that nothing of it outlives its owner."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest

import rota.measure.servers
from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers import PostgresServer, find_binaries
from rota.measure.servers.binaries import version_of

pytestmark = [pytest.mark.postgres, pytest.mark.large]

AS_ROOT = os.geteuid() == 0

SOURCES = Path(rota.measure.servers.__file__).parents[3]
LIBRARIES = Path(psycopg.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{SOURCES}:{LIBRARIES}"}

OWNER = """
import json, os, signal, sys
from pathlib import Path
from rota.measure.servers import PostgresServer

signal.signal(signal.SIGINT, lambda *_: print(json.dumps("interrupted"), flush=True))
server = PostgresServer.start(binaries=Path(sys.argv[1]))
child = 0
if "fork" in sys.argv:
    child = os.fork()
    if not child:
        signal.pause()
print(json.dumps({"url": server.url, "pid": server.pid, "child": child}), flush=True)
sys.stdin.read()
server.stop()
"""
"""A process that owns a server; it stops it in good order at the end of its input."""


@dataclass(frozen=True)
class Owner:
    """A process that owns a server, and what it said about it."""

    process: "subprocess.Popen[str]"
    url: str
    postmaster: psutil.Process
    child: int

    def heard(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def finish(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=30)


@contextmanager
def owner_of_a_server(
    binaries: Path, *arguments: str, python: str = sys.executable, **options: Any
) -> Iterator[Owner]:
    with subprocess.Popen(
        [python, "-c", OWNER, str(binaries), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **options,
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            yield Owner(process, said["url"], psutil.Process(said["pid"]), said["child"])
        finally:
            process.kill()


@pytest.fixture(scope="module", autouse=True)
def binaries() -> Path:
    try:
        return find_binaries()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may pass through, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def home_of(url: str) -> Path:
    """The folder that the watchdog made, from the socket's."""
    return Path(parse_qs(urlsplit(url).query)["host"][0]).parent


def python_for_nobody(nobody: dict[str, Any]) -> str:
    """An interpreter that user can run: this one may be in root's own folder."""
    probe = "import sys, rota.measure.servers; assert sys.version_info >= (3, 11)"
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            command = [python, "-c", probe]
            run = subprocess.run(
                command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, check=False, **nobody
            )
            if run.returncode == 0:
                return python
    pytest.skip("the user nobody can run no Python that is new enough")


def modes_above(folder: Path) -> dict[Path, int]:
    return {at: at.stat().st_mode for at in (folder, *folder.parents)}


def test_a_server_starts_and_creates_databases(binaries: Path) -> None:
    with PostgresServer.start(settings={"work_mem": "5MB"}) as server:
        assert server.version == version_of(binaries)
        url = server.create_database("it's a/n 'odd' näme")
        with closing(psycopg.connect(url)) as connection:
            row = connection.execute(
                "SELECT current_database(), current_setting('fsync'),"
                " current_setting('listen_addresses'), current_setting('work_mem'),"
                " current_setting('server_encoding')"
            ).fetchone()
        assert row == ("it's a/n 'odd' näme", "on", "", "5MB", "UTF8")


def test_only_its_own_account_can_reach_the_socket_and_the_data(
    postgres_server: PostgresServer,
) -> None:
    socket = home_of(postgres_server.url) / "s"
    postmaster = psutil.Process(postgres_server.pid)
    data = Path(postmaster.cwd())
    for folder in (socket, data):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == postmaster.uids().real
    assert postmaster.uids().real != 0
    assert len(os.fsencode(socket / ".s.PGSQL.5432")) < 100


def test_committed_rows_survive_a_crash(postgres_server: PostgresServer) -> None:
    before = postgres_server.pid
    with closing(psycopg.connect(postgres_server.url, autocommit=True)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        postgres_server.restart(mode="immediate")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert postgres_server.pid != before
    with closing(psycopg.connect(postgres_server.url)) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_frozen_postmaster_does_not_stop_a_restart(
    postgres_server: PostgresServer, end: signal.Signals
) -> None:
    with closing(psycopg.connect(postgres_server.url)) as connection:
        # A backend that is busy does not notice that its postmaster died.
        busy = psutil.Process(connection.info.backend_pid)
        connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 100000000000)")
        os.kill(postgres_server.pid, end)
        postgres_server.restart(mode="immediate")
        assert not busy.is_running() or busy.status() == psutil.STATUS_ZOMBIE
    with closing(psycopg.connect(postgres_server.url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_owner(binaries: Path, end: signal.Signals) -> None:
    with owner_of_a_server(binaries) as owner, closing(psycopg.connect(owner.url)):
        watchdog = owner.postmaster.parent()
        assert watchdog is not None
        backends = owner.postmaster.children(recursive=True)
        assert backends
        owner.process.send_signal(end)
        # It ends last: when it is gone, so must everything else be.
        watchdog.wait(timeout=30)
        _, alive = psutil.wait_procs([owner.postmaster, *backends], timeout=0)
    # Where process 1 does not reap, as in many containers, an ended process stays as a zombie.
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not home_of(owner.url).exists()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot watch a process")
def test_a_forked_child_does_not_keep_the_server_of_a_killed_owner(binaries: Path) -> None:
    # The child holds a copy of the pipe's write end, so that the pipe alone does not tell.
    with owner_of_a_server(binaries, "fork") as owner:
        watchdog = owner.postmaster.parent()
        assert watchdog is not None
        try:
            owner.process.kill()
            psutil.wait_procs([watchdog], timeout=30)
            assert not home_of(owner.url).exists()
        finally:
            os.kill(owner.child, signal.SIGKILL)


def test_ctrl_c_reaches_the_owner_but_not_the_server(binaries: Path) -> None:
    with owner_of_a_server(binaries, start_new_session=True) as owner:
        os.killpg(owner.process.pid, signal.SIGINT)
        assert owner.heard() == "interrupted"
        with closing(psycopg.connect(owner.url)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert owner.finish() == 0
    assert not home_of(owner.url).exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root can start a process as another user")
def test_an_ordinary_user_can_start_one(binaries: Path) -> None:
    nobody: dict[str, Any] = {"user": "nobody", "extra_groups": [], "cwd": "/"}
    with owner_of_a_server(binaries, python=python_for_nobody(nobody), **nobody) as owner:
        assert owner.postmaster.uids() == psutil.Process(owner.process.pid).uids()
        with closing(psycopg.connect(owner.url)) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("postgres",)
        assert owner.finish() == 0
    assert not home_of(owner.url).exists()


@pytest.mark.skipif(not AS_ROOT, reason="an ordinary user's server is the user's own process")
def test_root_can_use_binaries_that_other_users_cannot_reach(
    binaries: Path, tmp_path: Path
) -> None:
    package = binaries.parent.parent
    hidden = tmp_path / package.name
    for part in ("bin", "lib", "share"):
        if (binaries.parent / part).is_dir():  # Debian keeps its share folder elsewhere
            shutil.copytree(binaries.parent / part, hidden / binaries.parent.name / part)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, hidden.with_name(libraries.name))
    tmp_path.chmod(0o700)
    copied = hidden / binaries.parent.name / "bin"
    with (
        PostgresServer.start(binaries=copied) as server,
        closing(psycopg.connect(server.url)) as connection,
    ):
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_an_existing_folder_is_kept_and_its_data_used_again(open_folder: Path) -> None:
    before = modes_above(open_folder)
    with PostgresServer.start(folder=open_folder) as server:
        server.create_database("kept")
    with (
        PostgresServer.start(folder=open_folder) as server,
        closing(psycopg.connect(server.url)) as connection,
    ):
        names = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert ("kept",) in names
    assert modes_above(open_folder) == before


def test_a_folder_made_for_the_server_goes_with_it(open_folder: Path) -> None:
    before = modes_above(open_folder)
    with PostgresServer.start(folder=open_folder / "new"):
        assert (open_folder / "new" / "data" / "PG_VERSION").exists()
    assert list(open_folder.iterdir()) == []
    assert modes_above(open_folder) == before


@pytest.mark.skipif(not AS_ROOT, reason="a user can reach the user's own folders")
def test_a_folder_out_of_reach_is_refused_and_not_opened_up(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    before = modes_above(tmp_path)
    with pytest.raises(StoreUnavailable, match="Permission denied"):
        PostgresServer.start(folder=tmp_path / "new")
    assert modes_above(tmp_path) == before
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_start_says_why() -> None:
    with pytest.raises(StoreUnavailable, match=r'(?s)did not start:.*"max_connections"'):
        PostgresServer.start(settings={"max_connections": "plenty"})


def test_stopping_twice_is_fine_and_restarting_then_is_not() -> None:
    server = PostgresServer.start()
    server.stop()
    server.stop()
    assert not home_of(server.url).exists()
    with pytest.raises(StoreUnavailable, match="stopped"):
        server.restart()


def test_the_binaries_that_the_environment_names_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("initdb", "postgres"):
        (tmp_path / program).touch(mode=0o755)
    monkeypatch.setenv("ROTA_TEST_POSTGRES_BIN", str(tmp_path))
    assert find_binaries() == tmp_path
    (tmp_path / "initdb").unlink()
    with pytest.raises(ConfigError, match="bin folder"):
        find_binaries()
