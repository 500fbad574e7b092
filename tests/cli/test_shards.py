"""The commands, where several databases are one app."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from rota import Rota
from rota.app.shards import Shards
from tests.cli.calling import rota, seen_on_a_terminal, serving

NAMES = ("eu", "us")
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"

SHARDED = """
from rota import Rota

rota = Rota.shards()
alone = Rota("sqlite:///alone.db")

@rota.task(name="double", store_result=True)
def double(number: int) -> int:
    return 2 * number
"""


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shards]:
    """Two files with tables, which `ROTA_SHARDS` names; `us` has two jobs and `eu` one."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    named(monkeypatch, urls)
    with Rota.shards() as app:

        @app.task(name="double")
        def double(number: int) -> None:
            del number

        for name in ("eu", "us", "us"):
            with app.on(name):
                double.enqueue(1)
        yield app


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module with an app of several databases, and one of one, in the current folder."""
    (tmp_path / "sharded_shop.py").write_text(SHARDED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "sharded_shop"
    sys.modules.pop("sharded_shop", None)


def named(monkeypatch: pytest.MonkeyPatch, urls: dict[str, str]) -> None:
    """Let `ROTA_SHARDS` name these."""
    monkeypatch.setenv("ROTA_SHARDS", " ".join(f"{name}={url}" for name, url in urls.items()))


def document(*args: object) -> Any:
    """What a command says as JSON, that does what it shall."""
    result = rota(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_queues_of_each_and_the_sum(shards: Shards) -> None:
    """`rota queues list` lists the queues of each shard, and adds them up."""
    found = document("queues", "list")
    assert [found["shards"][name]["queues"][0]["jobs"]["available"] for name in NAMES] == [1, 2]
    [total] = found["sum"]["queues"]
    assert (total["name"], total["jobs"]["available"]) == ("default", 3)
    lines = rota("queues", "list").stdout.splitlines()
    assert [line for line in lines if line.startswith(("shard", "all"))] == [
        "shard eu",
        "shard us",
        "all shards",
    ]
    assert lines[-1].split()[:3] == ["default", "0", "3"]
    del shards


def test_top_of_each_and_the_sum(shards: Shards) -> None:
    """`rota top` looks at each shard once, and adds up."""
    found = document("top", "--every", "0.1s")
    assert [found["shards"][name]["queues"][0]["jobs"]["available"] for name in NAMES] == [1, 2]
    assert found["sum"]["queues"][0]["jobs"]["available"] == 3
    del shards


def test_top_is_live_for_all(shards: Shards) -> None:
    """On a terminal the live view shows the queues of each shard under its name, and their sum."""
    del shards
    shown = seen_on_a_terminal("top", "--every", "0.2s")
    assert b"eu/default" in shown
    assert b"us/default" in shown
    assert b"3 available" in shown


def test_dashboard_of_all(shards: Shards) -> None:
    """`rota dashboard` serves the pages of all; a missing file is a mistake, and is not made."""
    with serving("dashboard") as address:
        page = urlopen(f"{address}").read().decode()  # noqa: S310 - its own server
        assert "All shards" in page
        page = urlopen(f"{address}shard/us/queues").read().decode()  # noqa: S310 - likewise
        assert "Queues · us" in page
    Path(shards["us"].url.removeprefix("sqlite:///")).unlink()
    result = rota("dashboard", "--listen", "0")
    assert result.exit_code == 4
    assert "there is no database file" in result.stderr


def test_metrics_of_all(shards: Shards) -> None:
    """`rota metrics` tells of all shards, each figure with the shard's name."""
    del shards
    samples = document("metrics", "--once")["samples"]
    found = {
        one["labels"]["shard"]: one["value"]
        for one in samples
        if one["name"] == "rota_jobs" and one["labels"]["state"] == "available"
    }
    assert found == {"eu": 1, "us": 2}


def test_jobs_and_workers_of_each(shards: Shards) -> None:
    """`rota jobs list` and `rota workers list` say what there is on each shard."""
    found = document("jobs", "list")
    assert [len(found["shards"][name]["jobs"]) for name in NAMES] == [1, 2]
    assert [*document("workers", "list")["shards"]] == [*NAMES]
    del shards


def test_one_shard(shards: Shards) -> None:
    """`--shard` names one of them, for any command."""
    assert len(document("jobs", "list", "--shard", "us")["jobs"]) == 2
    assert rota("jobs", "cancel", 1, "--shard", "us").exit_code == 0
    states = [str(shards[name].job(1).status) for name in NAMES]
    assert states == ["available", "cancelled"]


def test_which_shard(shards: Shards) -> None:
    """A command that acts on one database asks which one is meant, and an unknown name is refused."""
    result = rota("jobs", "show", 1)
    assert result.exit_code == 2
    assert "choose one with --shard: eu, us" in result.stderr
    result = rota("jobs", "list", "--shard", "mars")
    assert result.exit_code == 2
    assert "no shard 'mars'; ROTA_SHARDS names eu, us" in result.stderr
    result = rota("jobs", "list", "--shard", "eu", "--url", "sqlite:///a.db")
    assert result.exit_code == 2
    assert "leave one of them out" in result.stderr
    del shards


def test_a_shard_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable no shard is known."""
    monkeypatch.delenv("ROTA_SHARDS", raising=False)
    result = rota("jobs", "list", "--shard", "eu")
    assert result.exit_code == 2
    assert "the variable is not set" in result.stderr


def test_a_shard_that_is_away(
    shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said to be away, with its name; the others are shown, and the exit code is its own."""
    del shards
    named(monkeypatch, {"away": AWAY, "us": f"sqlite:///{tmp_path}/us.db"})
    result = rota("queues", "list", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["shards"]["away"] is None
    assert found["shards"]["us"]["queues"][0]["jobs"]["available"] == 2
    assert found["sum"]["queues"][0]["jobs"]["available"] == 2
    assert "Error: shard away: " in result.stderr
    assert rota("queues", "list").stderr.count("shard away") == 1


def test_migrate_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rota migrate` brings all of them up to date."""
    named(monkeypatch, {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES})
    found = document("migrate")
    assert [found["shards"][name]["from"] for name in NAMES] == [0, 0]
    assert "is up to date" in rota("migrate").stdout


def test_doctor_of_all(shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rota doctor` examines each, and ends with the worst; its advice names the shard."""
    del shards
    urls = {"eu": f"sqlite:///{tmp_path}/eu.db", "missing": f"sqlite:///{tmp_path}/none.db"}
    named(monkeypatch, urls)
    result = rota("doctor", "--json")
    found = json.loads(result.stdout)
    assert found["shards"]["eu"]["findings"]
    assert found["shards"]["missing"] is None
    assert result.exit_code == 4
    assert "rota migrate --shard missing" in result.stderr


def test_worker_of_all(shards: Shards, module: str) -> None:
    """`rota worker` runs the jobs of all shards, and counts them."""
    result = rota("worker", f"{module}:rota", "--drain", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"settled": {"complete": 3}}
    assert [shards[name].job(1).result(0) for name in NAMES] == [2, 2]


def test_worker_of_one(shards: Shards, module: str) -> None:
    """With `--shard` it runs those of this one."""
    result = rota("worker", f"{module}:rota", "--drain", "--json", "--shard", "us")
    assert json.loads(result.stdout) == {"settled": {"complete": 2}}
    assert str(shards["eu"].job(1).status) == "available"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--url", "sqlite:///a.db"], "leave out --url and other apps"),
        (["sharded_shop:alone"], "leave out --url and other apps"),
        (["--shard", "mars"], "no shard 'mars'; the shards are eu, us"),
    ],
)
def test_worker_of_what(shards: Shards, module: str, options: list[str], why: str) -> None:
    """What does not fit an app with several databases is refused."""
    result = rota("worker", f"{module}:rota", *options, "--drain")
    assert result.exit_code == 2
    assert why in result.stderr
    del shards


def test_worker_of_an_app_with_one_database(shards: Shards, module: str) -> None:
    """An app with one database has no shards."""
    result = rota("worker", f"{module}:alone", "--shard", "eu", "--drain")
    assert result.exit_code == 2
    assert "this app has one database" in result.stderr
    del shards


def test_cron_of_an_app_with_several(shards: Shards, module: str) -> None:
    """A command that needs the app's tasks takes those of the shard that is named."""
    add = ("cron", "add", "daily", "@daily", "--task", "double", "--app", f"{module}:rota")
    given = ("--args", '{"number": 7}')
    result = rota(*add, *given, "--shard", "us")
    assert result.exit_code == 0, result.output
    assert [len(shards[name].cron.entries()) for name in NAMES] == [0, 1]


KEYED = """
from rota import Rota

urls = {name: f"sqlite:///{name}.db" for name in ("eu", "us")}
old = Rota.shards(urls, key="{number}", pinned={"7": "eu"})
new = Rota.shards(urls, key="{number}", pinned={"7": "us"})
alone = Rota("sqlite:///alone.db")

for app in (old, new):
    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number
"""


def test_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rota shards move` moves a key's jobs to where the key is pinned by now, and says how many."""
    (tmp_path / "moving_shop.py").write_text(KEYED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shop = import_module("moving_shop")
    with shop.old as old, shop.new as new:
        old.find_task("double").enqueue_many([(7,)] * 3)
        move = ("shards", "move", "moving_shop:new", "7", "--to")
        assert rota(*move, "us").stdout == "moved 3 job(s) of 7 to us\n"
        assert [new[name].jobs.count() for name in NAMES] == [0, 3]
        assert document(*move, "us") == {"jobs": 0, "joined": 0, "running": 0}
        result = rota(*move, "eu")
        assert (result.exit_code, "pin the key to eu first" in result.stderr) == (2, True)
        result = rota(*move, "mars")
        assert (result.exit_code, "no shard 'mars'" in result.stderr) == (2, True)
        result = rota("shards", "move", "moving_shop:alone", "7", "--to", "us")
        assert (result.exit_code, "has one database" in result.stderr) == (2, True)
    del sys.modules["moving_shop"]
