"""Ctrl-C and SIGTERM: what was measured is reported, and nothing is left."""

import json
import os
import re
import secrets
import signal
import sqlite3
import subprocess
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import pytest
from psycopg import sql

from rota.measure.bench import scratch as scratches
from rota.measure.bench.scratch import left_behind, scratch
from rota.measure.bench.soak import soak
from rota.measure.bench.steady import Course
from rota.measure.reports.report import Result
from rota.measure.servers import PostgresServer
from rota.terminal.progress import Silent
from tests.cli.calling import ROTA, environment, rota
from tests.fixtures.workers import LONG, until

pytestmark = pytest.mark.large

ALL: LiteralString = "SELECT datname FROM pg_database"
USED: LiteralString = (
    "SELECT datname FROM pg_stat_activity WHERE application_name = %s AND datname ~ '^rota_bench'"
)


class Bored(Silent):
    """Presses Ctrl-C after some seconds of the load."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def at(self, done: float) -> None:
        if done > self._seconds:
            self._seconds = float("inf")
            os.kill(os.getpid(), signal.SIGINT)


def interrupted(url: str, seconds: float) -> Result:
    """A soak of an hour, to be ended."""
    with scratch(url, private=False) as made:
        course = Course(3600.0, 100.0, 10, warm_up=0.5, every=0.5)
        return soak(made, course, Bored(seconds))


def test_partial(store_url: str) -> None:
    """The samples that were taken are reported, every job of the load is settled."""
    result = interrupted(store_url, 1.8)
    assert result.stopped_by == "Ctrl-C"
    assert len(result.series["completed"].x) == 2
    load: Any = result.figures["load"]
    assert load["jobs_settled"] == load["jobs_enqueued"] > 0
    assert load["seconds"] == pytest.approx(1.0, abs=0.3)


def test_partial_before_the_first_sample(store_url: str) -> None:
    """Nothing was measured, and that is no error."""
    result = interrupted(store_url, 0.2)
    assert result.stopped_by == "Ctrl-C"
    assert result.series["completed"].x == ()


def start(url: str, *args: str) -> "subprocess.Popen[str]":
    """A benchmark in a process group of its own, as a terminal would have it."""
    return subprocess.Popen(
        [*ROTA, "bench", *args], env=environment(url), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def begun(bench: "subprocess.Popen[str]", count: int) -> list[psutil.Process]:
    """Wait for its workers."""
    parent = psutil.Process(bench.pid)

    def workers() -> list[psutil.Process]:
        found = [
            child
            for child in parent.children(recursive=True)
            if "spawn_main" in " ".join(child.cmdline())
        ]
        return found if len(found) == count else []

    return until(workers, "the benchmark's processes")


def databases(url: str, query: LiteralString, *params: str) -> set[str]:
    """The names that a query gives."""
    with closing(psycopg.connect(url)) as connection:
        return {row[0] for row in connection.execute(query, params)}


def test_ctrl_c_at_a_terminal(tmp_path: Path) -> None:
    """All processes get Ctrl-C; the report is printed, marked as partial, with exit status 130."""
    file = tmp_path / "soak.json"
    bench = start(
        f"sqlite:///{tmp_path}/rota.db",
        "soak",
        "--seconds=3600",
        "--rate=100",
        "--keep",
        "--json",
        str(file),
    )
    with bench:
        workers = begun(bench, 2)
        [made] = tmp_path.glob("*/bench.db")
        with closing(sqlite3.connect(made)) as looking:
            until(
                lambda: looking.execute("SELECT count(*) FROM rota_job").fetchone() > (0,),
                "the load",
            )
        os.killpg(bench.pid, signal.SIGINT)
        output, said = bench.communicate(timeout=LONG)
    assert bench.returncode == 130, said
    assert "stopped by Ctrl-C" in said
    assert "Traceback" not in said
    assert not [worker for worker in workers if worker.is_running()]
    assert list(tmp_path.glob("rota-bench-*")) == []
    assert json.loads(file.read_bytes())["partial"]
    assert "jobs settled" in output


def test_ctrl_c_while_they_start(tmp_path: Path) -> None:
    """Processes that have just started print nothing on Ctrl-C, and none is left."""
    bench = start(f"sqlite:///{tmp_path}/rota.db", "soak", "--seconds=3600")
    with bench:
        workers = begun(bench, 1)
        os.killpg(bench.pid, signal.SIGINT)
        _, said = bench.communicate(timeout=LONG)
    assert bench.returncode == 130
    assert said == "Error: stopped by Ctrl-C\n"
    assert not [worker for worker in workers if worker.is_running()]
    assert list(tmp_path.glob("rota-bench-*")) == []


def named(url: str, name: str) -> str:
    """The URL with a name for its sessions."""
    return f"{url}{'&' if '?' in url else '?'}application_name={name}"


def name_of(number: int) -> str:
    """A signal's name in messages."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sent_to_all_processes(number: int, tmp_path: Path) -> None:
    """A signal to all processes, as from `timeout`: the report is printed, and names it."""
    file = tmp_path / "soak.json"
    bench = start(
        f"sqlite:///{tmp_path}/rota.db", "soak", "--seconds=3600", "--rate=100", "--keep",
        "--json", str(file),
    )  # fmt: skip
    with bench:
        workers = begun(bench, 2)
        [made] = tmp_path.glob("*/bench.db")
        with closing(sqlite3.connect(made)) as looking:
            until(
                lambda: looking.execute("SELECT count(*) FROM rota_job").fetchone() > (0,),
                "the load",
            )
        os.killpg(bench.pid, number)
        _, said = bench.communicate(timeout=LONG)
    assert bench.returncode == 130, said
    assert said.startswith(f"Error: stopped by {name_of(number)}; the report")
    assert json.loads(file.read_bytes())["partial"]
    assert not [worker for worker in workers if worker.is_running()]
    assert list(tmp_path.glob("rota-bench-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(postgres_url: str, number: int) -> None:
    """A benchmark without partial results removes its database and its processes."""
    # Others measure on this server, too; the name tells whose database it is.
    name = f"bench-{secrets.token_hex(4)}"
    bench = start(named(postgres_url, name), "idle", "--seconds=3600")
    with bench:
        workers = begun(bench, 1)
        used = until(lambda: databases(postgres_url, USED, name), "the database")
        assert databases(postgres_url, ALL) >= used
        bench.send_signal(number)
        _, said = bench.communicate(timeout=LONG)
    assert bench.returncode == 130, said
    assert said == f"Error: stopped by {name_of(number)}\n"
    assert not [worker for worker in workers if worker.is_running()]
    assert not databases(postgres_url, ALL) & used


def test_stopped_while_its_database_is_made(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C right after the database was made still removes it."""
    made = []

    def connected(url: str, name: str = "") -> AbstractContextManager["psycopg.Connection[Any]"]:
        if found := re.search("rota_bench_[0-9a-f]+", url):
            made.append(found[0])
            assert made[0] in databases(postgres_url, ALL)
            raise KeyboardInterrupt
        return real(url, name)

    real = scratches._connected
    monkeypatch.setattr(scratches, "_connected", connected)
    with scratch(postgres_url, private=False) as found, pytest.raises(KeyboardInterrupt):
        found.fresh().__enter__()
    assert len(made) == 1
    assert made[0] not in databases(postgres_url, ALL)


def test_a_running_one_is_in_use(postgres_url: str) -> None:
    """A running benchmark's database is in use, even if no worker is connected."""
    with scratch(postgres_url, private=False) as found, found.fresh() as url:
        [name] = re.findall("rota_bench_[0-9a-f]+", url)
        assert name in databases(postgres_url, ALL)
        assert name not in left_behind(postgres_url)


def test_one_that_is_being_made_is_in_use(postgres_server: PostgresServer) -> None:
    """Also in the moment in which nothing is connected to the database: before its first session."""
    url = postgres_server.url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rota_bench_0123abcd")
        assert left_behind(url) == ["rota_bench_0123abcd"]
        connection.execute("SET application_name = 'rota_bench_0123abcd'")
        assert left_behind(url) == []
        connection.execute("DROP DATABASE rota_bench_0123abcd")


def test_killed_ones_are_named(postgres_server: PostgresServer) -> None:
    """What a killed benchmark has left is named by the next one, with what removes it."""
    # A server of its own: other tests' benchmarks would name it, too.
    url = postgres_server.url
    name = f"bench-{secrets.token_hex(4)}"
    bench = start(named(url, name), "idle", "--seconds=3600")
    with bench:
        workers = begun(bench, 1)
        [made] = until(lambda: databases(url, USED, name), "the database")
        # While it runs it is not left behind.
        assert made not in left_behind(url)
        bench.kill()
    psutil.wait_procs(workers, timeout=LONG)
    try:
        until(lambda: made in left_behind(url), "the end of its sessions")
        next_one = rota("bench", "counts", "--sizes=1", url=url)
        assert next_one.exit_code == 0, next_one.output
        [said] = next_one.stderr.splitlines()
        assert f'DROP DATABASE "{made}";' in said
        assert made in databases(url, ALL)
    finally:
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(made)))
