"""`rota cron`."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota
from rota.cron.entry import CronEntry
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import SHOP, answer, finished, refused, rota
from tests.store.factories import open_session

NIGHTLY = CronEntry("nightly", "0 3 * * *", "shop.double", timezone="Asia/Tokyo", args='{"n":1}')


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


@pytest.fixture
def nightly(store: Store, connection: Connection) -> CronEntry:
    """An entry."""
    assert connection.run(store.cron.add(NIGHTLY))
    return NIGHTLY


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with an app."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return tmp_path


def test_no_entries(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without entries there are headings only; on a terminal a sentence says so."""
    headings = ["name", "expression", "timezone", "next", "last", "task", "state"]
    assert rota("cron", "list", url=url).stdout.split() == headings
    assert answer("cron", "list", url=url) == {"entries": []}
    monkeypatch.setattr("rota.terminal.output.on_terminal", lambda: True)
    assert rota("cron", "list", url=url).stdout == "There are no cron entries yet.\n"


@pytest.mark.usefixtures("nightly")
def test_listing(url: str) -> None:
    """Due times are shown by the entry's own clock, as many as were asked for."""
    [found] = answer("cron", "list", "--next", 3, url=url)["entries"]
    times = [datetime.fromisoformat(at) for at in found.pop("next")]
    assert found == {
        "name": "nightly", "expression": "0 3 * * *", "timezone": "Asia/Tokyo",
        "missed": "latest", "jitter": 0.0, "task": "shop.double", "args": {"n": 1}, "due": None,
        "queue": "default", "priority": 0, "options": None, "paused": False, "declared": False,
        "undeclared": False, "last": None,
    }  # fmt: skip
    assert [at.hour for at in times] == [3, 3, 3]
    assert {at.utcoffset() for at in times} == {timedelta(hours=9)}
    assert times[2] - times[0] == timedelta(days=2)
    line = rota("cron", "list", url=url).stdout.splitlines()[1]
    assert f"{times[0]:%Y-%m-%d} 03:00:00+09:00" in line


@pytest.mark.usefixtures("nightly")
def test_a_terminal_shows_short_times(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the minute, by the entry's clock."""
    monkeypatch.setattr("rota.cli.cron_text.on_terminal", lambda: True)
    line = rota("cron", "list", url=url).stdout.splitlines()[1]
    assert " 03:00" in line
    assert "+09:00" not in line


def test_states(url: str, store: Store, connection: Connection) -> None:
    """Why an entry makes no jobs; then it has no next due time."""
    session = open_session(store, connection)
    entries = [CronEntry(name, "@hourly", "t") for name in ("gone", "here", "paused")]
    connection.run(store.cron.declare(session, entries))
    connection.run(store.cron.pause("paused"))
    listed = {entry["name"]: entry for entry in answer("cron", "list", url=url)["entries"]}
    assert not any(entry["undeclared"] for entry in listed.values())
    connection.run(store.close_session(session))
    connection.run(store.cron.declare(open_session(store, connection), entries[1:2]))
    listed = {entry["name"]: entry for entry in answer("cron", "list", url=url)["entries"]}
    assert [name for name, entry in listed.items() if entry["next"]] == ["here"]
    lines = rota("cron", "list", url=url).stdout.splitlines()
    assert [line.split("\t")[-1] for line in lines[1:]] == ["undeclared", "", "paused"]


def test_adding(url: str, shop: Path) -> None:
    """The app says whether the task and the args are right."""
    words = ["cron", "add", "nightly", "0 3 * * *", "--app", "shop:rota", "--task", "shop.double",
             "--args", '{"number": 7}', "--timezone", "Europe/Rome", "--missed", "all",
             "--jitter", "2m"]  # fmt: skip
    done = finished(*words, "--url", url, cwd=shop)
    assert (done.returncode, done.stdout) == (0, "cron entry nightly is added\n"), done.stderr
    [found] = answer("cron", "list", url=url)["entries"]
    assert (found["args"], found["missed"], found["jitter"]) == ({"number": 7}, "all", 120.0)
    assert found["timezone"] == "Europe/Rome"
    again = finished(*words, url=url, cwd=shop)
    assert again.returncode == 1
    assert "there is already a cron entry named 'nightly'" in again.stderr
    # Other args need the app, too.
    change = ["cron", "change", "nightly", "--args", "[8]", "--app", "shop"]
    assert finished(*change, url=url, cwd=shop).returncode == 0
    assert answer("cron", "list", url=url)["entries"][0]["args"] == {"number": 8}


def test_adding_what_cannot_be(url: str, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mistake is named, and nothing is stored."""
    monkeypatch.chdir(shop)
    (shop / "crons.py").write_text(SHOP, encoding="utf-8")

    def add(*more: str, expression: str = "@daily", task: str = "crons.double") -> object:
        words = ("cron", "add", "e", expression, "--app", "crons", "--task", task)
        return rota(*words, *more, url=url)

    def check(result: object, code: int, *words: str) -> None:
        refused(result, code, *words)  # type: ignore[arg-type]

    check(add("--args", "[1]", expression="0 0 30 2 *"), 2, "0 0 30 2 *")
    check(add("--args", "[1]", "--timezone", "Europe/Roma"), 2, "Europe/Rome")
    check(add("--args", "[1]", task="crons.none"), 1, "crons.none")
    check(add("--args", '{"colour": 1}'), 1, "colour")
    check(add(), 1, "number")
    check(add("--args", "{"), 2, "--args")
    check(add("--args", "7"), 2, "--args")
    check(rota("cron", "add", "e", "@daily", "--task", "t", url=url), 2, "--app MODULE:APP")
    check(rota("cron", "add", " ", "@daily", "--task", "t", url=url), 2, "cron: must be a name")
    assert answer("cron", "list", url=url) == {"entries": []}


@pytest.mark.usefixtures("nightly")
def test_changing(url: str) -> None:
    """Only the given options change."""
    said = rota("cron", "change", "nightly", "--expression", "@weekly", "--jitter", "1m", url=url)
    assert said.stdout == "cron entry nightly is changed\n"
    [found] = answer("cron", "list", url=url)["entries"]
    assert (found["expression"], found["jitter"], found["timezone"]) == (
        "@weekly", 60.0, "Asia/Tokyo",
    )  # fmt: skip
    refused(rota("cron", "change", "nightly", url=url), 2, "nothing to change")
    refused(rota("cron", "change", "nightly", "--expression", "* *", url=url), 2, "five fields")
    refused(rota("cron", "change", "nightly", "--args", "[1]", url=url), 2, "--app")


@pytest.mark.usefixtures("nightly")
def test_pausing_and_removing(url: str, store: Store, connection: Connection) -> None:
    """Each says whether it changed anything."""
    assert rota("cron", "pause", "nightly", url=url).stdout == "cron entry nightly is paused\n"
    expected = {"entry": "nightly", "paused": True, "changed": False}
    assert answer("cron", "pause", "nightly", url=url) == expected
    [found] = connection.run(store.cron.entries())
    assert found.paused
    assert rota("cron", "resume", "nightly", url=url).stdout == "cron entry nightly is resumed\n"
    expected = {"entry": "nightly", "paused": False, "changed": False}
    assert answer("cron", "resume", "nightly", url=url) == expected
    assert rota("cron", "remove", "nightly", url=url).stdout == "cron entry nightly is removed\n"
    assert connection.run(store.cron.entries()) == []


@pytest.mark.usefixtures("nightly")
def test_running(url: str) -> None:
    """A job is enqueued, with the entry's args."""
    job = answer("cron", "run", "nightly", url=url)["job"]
    [shown] = answer("jobs", "show", job, url=url)["jobs"]
    assert (shown["task"], shown["args"], shown["state"]) == ("shop.double", {"n": 1}, "available")
    assert "of cron entry nightly is enqueued" in rota("cron", "run", "nightly", url=url).stdout


UNIQUE = """
from rota import Rota, Unique

rota = Rota()

@rota.task(queue="mail", unique="{number}")
def once(number: int) -> None: ...

latest = rota.task(name="latest", unique=Unique(on_conflict="replace"))(lambda: None)

rota.queue("mail", timeout=5)
"""


def test_running_what_is_there(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unique task's job is named, and whether it is new; the app's options hold."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uniques.py").write_text(UNIQUE, encoding="utf-8")
    for task, args in (("uniques.once", "[1]"), ("latest", "[]")):
        rota(
            "cron",
            "add",
            task,
            "@daily",
            "--app",
            "uniques",
            "--task",
            task,
            "--args",
            args,
            url=url,
        )
    ran = answer("cron", "run", "uniques.once", url=url)
    assert (ran["entry"], ran["placing"]) == ("uniques.once", "created")
    [shown] = answer("jobs", "show", ran["job"], url=url)["jobs"]
    assert (shown["unique_key"], shown["timeout"]) == ("1", 5.0)
    said = rota("cron", "run", "uniques.once", url=url).stdout
    assert said == (
        f"job {ran['job']} of cron entry uniques.once is already there: nothing was enqueued\n"
    )
    again = answer("cron", "run", "uniques.once", url=url)
    assert (again["job"], again["placing"]) == (ran["job"], "skipped")
    job = answer("cron", "run", "latest", url=url)["job"]
    said = rota("cron", "run", "latest", url=url).stdout
    assert said == f"job {job} of cron entry latest was already there, and is replaced\n"
    change = ["cron", "change", "uniques.once", "--args", "[2]", "--app", "uniques"]
    assert rota(*change, url=url).exit_code == 0
    assert answer("cron", "run", "uniques.once", url=url)["placing"] == "created"
    listed = {entry["name"]: entry for entry in answer("cron", "list", url=url)["entries"]}
    assert listed["uniques.once"]["options"]["unique_key"] == "2"


@pytest.mark.parametrize("verb", ["change", "remove", "pause", "resume", "run"])
def test_unknown_entries(url: str, verb: str) -> None:
    """An error names the missing entry, and the command that lists the entries."""
    more = ["--jitter", "1s"] if verb == "change" else []
    refused(rota("cron", verb, "none", *more, url=url), 1, "'none'", "rota cron list")


def test_a_jitter_has_a_unit(url: str) -> None:
    """A bare number is refused, as it is everywhere."""
    said = rota("cron", "change", "nightly", "--jitter", "5", url=url)
    assert said.exit_code == 2
    assert "5 has no unit; write 5s" in said.stderr


@pytest.mark.parametrize("verb", ["list", "remove", "pause", "resume", "run"])
def test_a_database_that_is_not_there(tmp_path: Path, verb: str) -> None:
    """A mistyped path makes no file."""
    words = ["cron", verb, *([] if verb == "list" else ["e"])]
    refused(rota(*words, url=f"sqlite:///{tmp_path}/none.db"), 4, "no database file")
    assert list(tmp_path.iterdir()) == []


def test_names_and_expressions_cannot_disturb_a_terminal(url: str) -> None:
    """An entry that was made by hand is shown with its control characters visible."""
    with Rota(url) as app:
        app.database.run(app.database.store.cron.add(CronEntry("e\x1b[31m", "@daily", "t\x1b[2J")))
    result = rota("cron", "list", url=url)
    assert "\x1b" not in result.stdout
