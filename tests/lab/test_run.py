"""`rota lab`: its reports, what it refuses, and that nothing is left when it ends early."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from click.testing import CliRunner

from rota.measure.servers import PostgresServer
from rota_lab.command import lab as lab_commands
from rota_lab.experiment import experiments
from rota_lab.strategy import strategies
from tests.cli.calling import ROTA, answer, environment, refused, rota
from tests.fixtures.workers import LONG, until

NAMES = list(experiments())


def lab(
    out: Path, name: str, *options: object, databases: list[str], strategies: tuple[str, ...]
) -> Any:
    """The report of an experiment's quick form, checked for what all of them have."""
    report = answer(
        "lab", "run", name, "--quick", "--out", out, *options,
        *(f"--database={url}" for url in databases), *(f"--strategy={name}" for name in strategies),
    )  # fmt: skip
    assert report == json.loads((out / "result.json").read_bytes())
    assert report["name"] == name
    assert report["question"].endswith("?")
    assert not report["partial"]
    assert report["parameters"]["form"] == "quick"
    assert {"rota", "python"} < set(report["versions"])
    assert report["settings"]
    page = (out / "report.html").read_text(encoding="utf-8")
    charts = list(out.glob(f"{name}-*.png"))
    assert page.count("<figure>") == len(charts) > 0
    for heading in ("What to see", "What article", "Charts", "Figures", "Where and how"):
        assert f"<h2>{heading}" in page
    for chart in charts:
        assert chart.read_bytes().startswith(b"\x89PNG")
    return report


@pytest.mark.large
def test_parallel(postgres_url: str, server_url: Callable[[str], str], tmp_path: Path) -> None:
    """What article 4 found: every worker gets the same rows, or each row is worked once."""
    databases = [postgres_url, server_url("sqlite")]
    report = lab(
        tmp_path, "parallel", "--set", "rows=60", databases=databases,
        strategies=("for-update", "select-delete", "rota"),
    )  # fmt: skip
    runs = report["figures"]["runs"]
    assert list(runs) == [
        "for-update, PostgreSQL, 1", "for-update, PostgreSQL, 2", "select-delete, 1",
        "select-delete, 2", "rota, PostgreSQL, 1", "rota, PostgreSQL, 2", "rota, SQLite, 1",
        "rota, SQLite, 2",
    ]  # fmt: skip
    for name, run in runs.items():
        assert run["rows_lost"] == 0
        worked = sum(map(int, run["rows_per_process"].split()))
        assert worked == 60 + run["rows_worked_again"]
        assert run["seconds"] > 0
        if name != "select-delete, 2":
            assert run["rows_worked_again"] == 0
    assert runs["select-delete, 2"]["rows_worked_again"] > 0


@pytest.mark.large
def test_mvcc(postgres_url: str, tmp_path: Path) -> None:
    """A sample for each interval, without a long transaction and beside one."""
    report = lab(
        tmp_path, "mvcc", "--set=rate=20", databases=[postgres_url], strategies=("skip-locked",)
    )
    for how in ("alone", "beside a long transaction"):
        name = f"skip-locked, PostgreSQL, {how}"
        series = {key: report["series"][f"{name}: {key}"]["y"] for key in KEYS}
        assert {len(points) for points in series.values()} == {2}
        assert sum(series["enqueued"]) == pytest.approx(20, abs=10)
        assert sum(series["enqueued"]) - sum(series["worked"]) == series["depth"][-1]
        assert series["claim p95"][-1] >= series["claim p50"][-1] > 0
        ages = series["oldest transaction"]
        if how == "alone":
            assert all(age is None or age < 0.4 for age in ages)
        else:
            assert 0.4 < ages[0] < ages[1]


KEYS = (
    "depth",
    "claim p50",
    "claim p95",
    "dead tuples",
    "oldest transaction",
    "enqueued",
    "worked",
)


def test_list() -> None:
    """Each strategy and each experiment is explained in two sentences."""
    listed = answer("lab", "list")
    assert [listing["name"] for listing in listed["strategies"]] == list(strategies())
    assert [listing["name"] for listing in listed["experiments"]] == NAMES
    for listing in (*listed["strategies"], *listed["experiments"]):
        assert listing["summary"].count(". ") == 1, listing["name"]
        assert listing["summary"].endswith("."), listing["name"]
        assert listing["databases"]
    shown = rota("lab", "list").stdout
    for name in (*strategies(), *NAMES):
        assert name in shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nonsense",), 2, ("no experiment 'nonsense'", "parallel")),
        (("parallel", "--strategy=none"), 2, ("no strategy 'none'", "skip-locked")),
        (("parallel", "--database=oracle://x"), 2, ("oracle", "postgresql://")),
        (("parallel", "--database=mysql:x"), 2, ("mysql:x", "mariadb://")),
        (("parallel", "--database=sqlite", "--database=sqlite:///x.db"), 2, ("two of sqlite",)),
        (("parallel", "--strategy=skip-locked", "--database=sqlite"), 2, ("PostgreSQL or MariaDB",)),
        (("mvcc", "--database=sqlite"), 2, ("mvcc runs on PostgreSQL",)),
        (("parallel", "--database=sqlite:///no/such/x.db"), 2, ("no folder",)),
        (("parallel", "--set=rows"), 2, ("name=number",)),
        (("parallel", "--set=colour=3"), 2, ("'colour'", "rows")),
        (("parallel", "--database=postgresql:///x?host=/none"), 3, ("PostgreSQL",)),
        (("parallel", "--database=mariadb://root@/?unix_socket=/none"), 3, ("MariaDB",)),
        (("parallel", "--out=/proc/x"), 1, ("/proc/x", "--out")),
    ],
)  # fmt: skip
def test_refused(
    words: tuple[str, ...], code: int, said: tuple[str, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Bad input gets one line that says what to do, and no report."""
    monkeypatch.chdir(tmp_path)
    refused(rota("lab", "run", *words), code, *said)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown() -> None:
    """A URL that is refused is shown without what is before its host."""
    result = rota("lab", "run", "parallel", "--database=oracle://me:secret@host/x")
    refused(result, 2, "host/x")
    assert "secret" not in result.output


def test_what_is_missing_is_named(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without MariaDB's programs its strategies are left out, unless they were asked for."""
    monkeypatch.setattr("rota.measure.servers.mariadb.find_program", _nowhere)
    monkeypatch.setattr(type(experiments()["parallel"]), "usual", ("for-update", "rota"))
    databases = [f"--database={postgres_url}", "--database=mariadb", "--database=sqlite"]
    words = ["lab", "run", "parallel", "--quick", "--set=rows=5", "--set=processes=1"]
    report = answer(*words, *databases, "--out", tmp_path)
    assert "for-update, MariaDB is left out: nowhere" in report["notes"]
    assert "for-update, PostgreSQL, 1" in report["figures"]["runs"]
    asked = rota(*words, "--database=mariadb", "--strategy=for-update", "--out", tmp_path)
    refused(asked, 2, "for-update, MariaDB cannot run: nowhere")


def _nowhere(*_names: str) -> str:
    from rota.errors import ConfigError

    raise ConfigError("nowhere")


def started(url: str, out: Path) -> "subprocess.Popen[str]":
    """A long `mvcc` in a process group of its own, with its first sample taken."""
    return subprocess.Popen(
        [*ROTA, "lab", "run", "mvcc", "--quick", "--set=seconds=600", "--set=every=0.1",
         "--strategy=skip-locked", f"--database={url}", "--out", str(out)],
        env=environment(None), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def at_work(server: str) -> str:
    """Wait until workers work in a database of the lab's; its name."""
    with closing(psycopg.connect(server, autocommit=True)) as connection:
        query = (
            "SELECT datname FROM pg_stat_activity WHERE datname LIKE 'rota_lab_%'"
            " AND query LIKE 'delete from queue%'"
        )
        names = until(lambda: connection.execute(query).fetchall(), "the lab's workers")
        return str(names[0][0])


def ends(process: "subprocess.Popen[str]", end: Callable[[], None]) -> tuple[int, str]:
    """End a run somehow; its exit status and what it said. No process of it is left."""
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    end()
    _, said = process.communicate(timeout=LONG)
    assert "Traceback" not in said
    psutil.wait_procs(children, timeout=LONG)
    assert not [child for child in children if child.is_running()]
    return process.returncode, said


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    """A server of the test's own: others make databases of the lab's on the shared one."""
    return postgres_server


@pytest.mark.large
def test_ctrl_c(server: PostgresServer, tmp_path: Path) -> None:
    """What was measured is reported, marked as partial; databases and processes are gone."""
    with started(server.url, tmp_path) as process:
        name = at_work(server.url)
        until_samples(process)
        code, said = ends(process, lambda: os.killpg(process.pid, signal.SIGINT))
    assert code == 130
    assert "stopped by Ctrl-C" in said
    partial(tmp_path, "alone")
    with closing(psycopg.connect(server.url)) as connection:
        row = connection.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [name])
        assert row.fetchone() == (0,)


@pytest.mark.large
def test_a_server_that_goes_away(server: PostgresServer, tmp_path: Path) -> None:
    """A clear error, and a partial report of what was measured by then."""
    with started(server.url, tmp_path) as process:
        at_work(server.url)
        until_samples(process)
        code, said = ends(process, lambda: os.kill(server.pid, signal.SIGQUIT))
    assert code == 3, said
    assert len(said.splitlines()) == 1
    assert said.startswith("Error: ")
    report = partial(tmp_path, "alone")
    assert "The run ended early" in report["notes"][-1]


def until_samples(process: "subprocess.Popen[str]") -> None:
    """Wait for the parent's own looks, of which each is a sample."""
    parent = psutil.Process(process.pid)
    before = parent.num_ctx_switches().voluntary
    until(lambda: parent.num_ctx_switches().voluntary > before + 50, "samples")


def partial(folder: Path, how: str) -> Any:
    """The report, which says that it is partial, and has samples."""
    report = json.loads((folder / "result.json").read_bytes())
    assert report["partial"]
    assert len(report["series"][f"skip-locked, PostgreSQL, {how}: worked"]["y"]) > 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Interrupted: this is what was measured by then." in page
    return report


def test_the_list_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are wrapped at words, within the width of the terminal."""
    monkeypatch.setattr("rota_lab.command.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    said = CliRunner().invoke(lab_commands, ["list"]).output
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "for-update  (articles 4, 2; PostgreSQL, MariaDB)" in said
    for strategy in strategies().values():
        assert strategy.summary in " ".join(said.split())
