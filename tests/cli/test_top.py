"""`rota top`, but for its screen: what it prints, and what it refuses."""

import sys
from pathlib import Path

import pytest

from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import answer, finished, refused, rota, seen_on_a_terminal
from tests.store.factories import claim, enqueue, open_session

QUICK = ("--every", "0.1s")


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def test_json(url: str, store: Store, connection: Connection) -> None:
    """One document with queues, workers and the horizon; rates of two looks."""
    enqueue(store, connection, 3)
    enqueue(store, connection, queue="mail", delay=60.0)
    connection.run(store.pause("mail"))
    session = open_session(store, connection)
    claim(store, connection, session, 1)
    told = answer("top", *QUICK, url=url)
    assert told["every_seconds"] == 0.1
    assert 0 < told["took_seconds"] < 20
    assert told["database"].lower().startswith(store.name)
    default, mail = told["queues"]
    zeros = dict.fromkeys(map(str, State), 0)
    assert default["jobs"] == zeros | {"available": 2, "running": 1}
    assert (default["in_per_second"], default["out_per_second"]) == (0.0, 0.0)
    assert default["oldest_seconds"] >= 0
    assert mail["paused"]
    assert mail["oldest_seconds"] is None
    [worker] = told["workers"]
    assert (worker["session"], worker["worker"], worker["jobs"]) == (session, "alpha:4711", 1)
    assert (told["horizon"]["log_bytes"] is None) == (store.name == "postgres")


def test_nothing_as_json(url: str) -> None:
    """An empty database is an empty document."""
    told = answer("top", *QUICK, url=url)
    assert told["queues"] == told["workers"] == []


def test_a_pipe(url: str, store: Store, connection: Connection) -> None:
    """Without a terminal it prints what it sees, with tabs, and ends; --once means the same."""
    enqueue(store, connection, 3, queue="mail")
    open_session(store, connection)
    for words in (QUICK, ("--once", *QUICK)):
        said = rota("top", *words, url=url)
        assert said.exit_code == 0, said.output
        lines = said.stdout.splitlines()
        assert lines[1].split() == [
            "queue", "paused",
            *(state for state in State if state != "cancelled"),
            "in/s", "out/s", "oldest",
        ]  # fmt: skip
        assert [word.strip() for word in lines[2].split("\t")][:4] == ["mail", "", "0", "3"]
        assert "alpha:4711" in said.stdout
        assert ("Write-ahead log:" in lines[-1]) == (store.name == "sqlite")
        assert ("Oldest transaction:" in lines[-1]) == (store.name == "postgres")


@pytest.mark.parametrize("every", ["0", "0.05s", "5", "soon", "-1"])
def test_how_often(url: str, every: str) -> None:
    """Intervals that make no sense are refused."""
    said = rota("top", "--every", every, "--once", url=url)
    assert said.exit_code == 2
    assert "--every" in said.stderr


def test_without_textual(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live view names the extra that it needs; what is printed once needs none."""
    for name in [name for name in sys.modules if name.split(".")[0] == "textual"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("screen", "grid", "asking"):
        monkeypatch.delitem(sys.modules, f"rota.top.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "textual", None)
    assert rota("top", "--once", *QUICK, url=url).exit_code == 0
    monkeypatch.setattr("rota.cli.top._live", lambda: True)
    refused(rota("top", url=url), 2, "rota[top]", "--once")


def test_textual_is_imported_for_the_live_view_only(url: str, tmp_path: Path) -> None:
    """Printing once does not load it: it takes its time."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['textual'] = None")
    said = finished("top", *QUICK, url=url, PYTHONPATH=str(tmp_path))
    assert said.returncode == 0, said.stderr


def test_on_a_terminal(url: str, store: Store, connection: Connection) -> None:
    """On a terminal it draws until q is pressed, and leaves the terminal as it was."""
    enqueue(store, connection, queue="mail")
    seen = seen_on_a_terminal("top", "--every", "0.2s", url=url)
    assert b"mail" in seen
    assert b"\x1b[?1049l" in seen
