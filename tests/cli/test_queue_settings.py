"""`rota queues set`, `unset` and `show`."""

from pathlib import Path

import pytest

from rota.model.queue_settings import FOREVER, QueueSettings
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import answer, finished, refused, rota
from tests.store.factories import enqueue

ALL = (
    "--retention", "6h", "--retention", "discarded=30d", "--max-attempts", 3, "--timeout", "30s",
    "--concurrency", 4,
)  # fmt: skip


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def test_set(url: str, store: Store, connection: Connection) -> None:
    """The settings are printed, and that the queue is new; other settings stay."""
    said = rota("queues", "set", "mail", *ALL, url=url)
    assert said.exit_code == 0
    assert said.stdout == (
        "queue mail: retention of completed 6h, retention of cancelled 6h, "
        "retention of discarded 30d, max attempts 3, timeout 30s, concurrency 4; "
        "it is new: it never had a job\n"
    )
    expected = QueueSettings(21_600, 21_600, 2_592_000, 3, 30, 4)
    assert connection.run(store.queue_settings()) == {"mail": expected}
    again = answer("queues", "set", "mail", "--retention", "discarded=forever", url=url)
    assert str(again["set"]["completed"]) == "21600.0", "the same figure from every store"
    assert again == {
        "queue": "mail",
        "new": False,
        "set": {"completed": 21_600.0, "cancelled": 21_600.0, "discarded": "forever",
                "max_attempts": 3, "timeout": 30.0, "concurrency": 4},
    }  # fmt: skip
    assert connection.run(store.queue_settings())["mail"].discarded == FOREVER


def test_unset(url: str, store: Store, connection: Connection) -> None:
    """Some settings, then all of them."""
    rota("queues", "set", "mail", *ALL, url=url)
    left = answer("queues", "unset", "mail", "timeout", "retention=cancelled", url=url)["set"]
    assert (left["timeout"], left["cancelled"], left["completed"]) == (None, None, 21_600.0)
    left = answer("queues", "unset", "mail", "retention", "max-attempts", url=url)["set"]
    assert {name for name, value in left.items() if value is not None} == {"concurrency"}
    assert rota("queues", "unset", "mail", url=url).stdout == "queue mail: nothing is set\n"
    assert connection.run(store.queue_settings()) == {}


def test_show(url: str, store: Store, connection: Connection) -> None:
    """The settings, where each comes from, and how many jobs there are."""
    enqueue(store, connection, 3, queue="mail")
    rota("queues", "set", "mail", "--timeout", "90s", "--retention", "cancelled=0", url=url)
    shown = rota("queues", "show", "mail", url=url).stdout.splitlines()
    assert shown[0] == "queue mail"
    assert shown[1].split() == ["jobs", "3", "available"]
    lines = {line[:26].strip(): line[26:].split() for line in shown[2:]}
    assert lines["timeout"] == ["90s", "set", "with", "`rota", "queues", "set`"]
    assert lines["retention of cancelled"][0] == "0s"
    assert lines["retention of completed"] == [
        "a",
        "day",
        "unless",
        "the",
        "code",
        "says",
        "otherwise",
    ]
    assert lines["max attempts"][0] == "5"
    assert lines["concurrency"][:2] == ["no", "limit"]
    found = answer("queues", "show", "mail", url=url)
    assert found["jobs"]["available"] == 3
    assert found["settings"]["timeout"] == {"value": 90.0, "from": "set"}
    assert found["settings"]["discarded"] == {"value": "forever", "from": "default"}


def test_show_what_the_code_says(url: str, tmp_path: Path) -> None:
    """With the app named, its declarations are known, also of a queue without a job."""
    (tmp_path / "shop.py").write_text(
        "from rota import Rota\n"
        "rota = Rota(retention=7200)\n"
        "rota.queue('mail', timeout=30, max_attempts=2, retention={'discarded': 60})\n"
    )
    shown = finished("queues", "show", "mail", "--app", "shop", "--json", url=url, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert '"value": 30.0,\n      "from": "code"' in shown.stdout
    rota("queues", "set", "mail", "--timeout", "5m", url=url)
    shown = finished("queues", "show", "mail", "--app", "shop:rota", url=url, cwd=tmp_path)
    lines = {line[:26].strip(): line[26:].split() for line in shown.stdout.splitlines()[2:]}
    assert lines["timeout"][:2] == ["5m", "set"]
    assert lines["max attempts"] == ["2", "declared", "in", "the", "code"]
    assert lines["retention of discarded"][0] == "1m"
    assert lines["retention of completed"] == ["2h", "default"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--retention, --max-attempts"),
        (("--concurrency", 0), "concurrency"),
        (("--concurrency", "many"), "concurrency"),
        (("--max-attempts", 0), "max_attempts"),
        (("--timeout", "30"), "30s, 30m or 30h"),
        (("--timeout", "-5s"), "duration such as"),
        (("--timeout", "0"), "more than 0 seconds"),
        (("--retention", "6"), "6 has no unit"),
        (("--retention", "running=6h"), "jobs are kept, not 'running'"),
        (("--retention", "forever"), "discarded=forever"),
        (("--retention", "completed=forever"), "discarded=forever"),
        (("--retention", "discarded=-1d"), "duration such as"),
    ],
    ids=str,
)
def test_what_cannot_be_set(url: str, options: tuple[object, ...], words: str) -> None:
    """It is refused before anything is written."""
    result = rota("queues", "set", "mail", *options, url=url)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert answer("queues", "list", url=url) == {"queues": []}


@pytest.mark.parametrize("verb", ["set", "unset", "show", "clear"])
@pytest.mark.parametrize("name", ["", " ", "mail ", "red\x1b[31m"])
def test_a_name_that_is_none(url: str, verb: str, name: str) -> None:
    """A name that no queue can have is refused."""
    more = ("--concurrency", 1) if verb == "set" else ()
    refused(rota("queues", verb, name, *more, url=url), 2, "queue")


@pytest.mark.parametrize("verb", ["unset", "show", "clear"])
def test_an_unknown_queue(url: str, verb: str) -> None:
    """A queue that does not exist cannot be unset, shown or cleared."""
    refused(rota("queues", verb, "mial", url=url), 1, "no queue named mial", "rota queues list")
    assert answer("queues", "list", url=url) == {"queues": []}


def test_an_unknown_setting(url: str) -> None:
    """A typing error is refused, and the known settings are named."""
    result = rota("queues", "unset", "mail", "time-out", url=url)
    assert result.exit_code == 2
    assert "'time-out' is not one of concurrency, max-attempts, retention" in " ".join(
        result.stderr.split()
    )
