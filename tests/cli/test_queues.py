"""`rota queues`."""

import json
from pathlib import Path

import pytest

from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import answer, refused, rota
from tests.store.factories import claim, enqueue, one_of_each, open_session


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def test_no_queues(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without queues there are headings only; on a terminal a sentence says so."""
    assert rota("queues", "list", url=url).stdout.split() == ["queue", "paused", *State]
    assert answer("queues", "list", url=url) == {"queues": []}
    monkeypatch.setattr("rota.terminal.output.on_terminal", lambda: True)
    assert rota("queues", "list", url=url).stdout == "There are no queues yet.\n"


def test_counts(url: str, store: Store, connection: Connection) -> None:
    """Each queue has the number of its jobs in each state."""
    one_of_each(store, connection)
    enqueue(store, connection, 3, queue="mail")
    listed = {queue["name"]: queue for queue in answer("queues", "list", url=url)["queues"]}
    assert list(listed) == ["default", "mail"]
    expected = dict.fromkeys(map(str, State), 0)
    assert listed["mail"]["jobs"] == expected | {"available": 3}
    assert listed["default"]["jobs"] == dict.fromkeys(expected, 1)
    assert not listed["mail"]["paused"]


def test_filters(url: str, store: Store, connection: Connection) -> None:
    """A list shows the queues that were asked for."""
    for queue in ("mail", "paint", "quiet"):
        enqueue(store, connection, queue=queue)
    connection.run(store.pause("zzz"))

    def names(*options: str) -> list[str]:
        return [queue["name"] for queue in answer("queues", "list", *options, url=url)["queues"]]

    assert names("--queue", "paint") == ["paint"]
    assert names("--limit", "2") == ["mail", "paint"]
    assert names("--state", "available") == ["mail", "paint", "quiet"]
    assert names("--state", "discarded") == []


def test_pause_and_resume(url: str, store: Store, connection: Connection) -> None:
    """A paused queue keeps its jobs until it is resumed."""
    [job] = enqueue(store, connection, queue="mail")
    session = open_session(store, connection)
    assert rota("queues", "pause", "mail", url=url).stdout == "queue mail is paused\n"
    assert rota("queues", "pause", "mail", url=url).stdout == "queue mail was already paused\n"
    assert claim(store, connection, session, queues=("mail",)) == []
    assert "\tyes" in rota("queues", "list", url=url).stdout
    assert rota("queues", "resume", "mail", url=url).stdout == "queue mail is resumed\n"
    assert rota("queues", "resume", "mail", url=url).stdout == "queue mail was not paused\n"
    assert [claimed.id for claimed in claim(store, connection, session, queues=("mail",))] == [job]


def test_pause_and_resume_as_json(url: str) -> None:
    """JSON says whether anything has changed."""
    for verb, paused in (("pause", True), ("resume", False)):
        for changed in (True, False):
            assert answer("queues", verb, "mail", url=url) == {
                "queue": "mail",
                "paused": paused,
                "changed": changed,
            }


def test_pausing_before_the_first_job(url: str) -> None:
    """A queue without jobs may be paused; the message says so, as it may be a typo."""
    assert "it had no job so far" in rota("queues", "pause", "mial", url=url).stdout


def test_an_unknown_queue(url: str, store: Store, connection: Connection) -> None:
    """A queue that does not exist cannot be resumed or listed; the error says which one may be meant."""
    refused(rota("queues", "resume", "mial", url=url), 1, "no queue named mial; `rota queues list")
    assert answer("queues", "list", url=url) == {"queues": []}
    enqueue(store, connection, queue="mail")
    for words in (("resume",), ("show",), ("unset",), ("clear", "--yes"), ("list", "--queue")):
        result = rota("queues", *words, "mial", url=url)
        refused(result, 1, "no queue named mial; did you mean mail? `rota queues list --url ")
    result = rota("queues", "list", "--queue", "mial", "--json", url=url)
    assert json.loads(result.stdout) == {"queues": []}
    assert rota("queues", "list", "--queue", "mail", "--state", "running", url=url).exit_code == 0


def test_a_new_queue_of_a_similar_name(url: str, store: Store, connection: Connection) -> None:
    """A queue may be paused and set up before its first job.

    The command says which one may be meant, and the way back.
    """
    enqueue(store, connection, queue="mail")
    for words, back in (
        (("pause", "mial"), "resume mial"),
        (("set", "mail2", "--max-attempts", "2"), "unset mail2"),
    ):
        result = rota("queues", *words, url=url)
        assert result.exit_code == 0
        assert result.stderr.startswith(f"(did you mean mail? `rota queues {back} --url ")
        assert rota("queues", *words, url=url).stderr == ""
    assert rota("queues", "pause", "mail", url=url).stderr == ""
    assert rota("queues", "pause", "something else", url=url).stderr == ""


@pytest.mark.parametrize("name", ["", " ", "mail ", "red\x1b[31m", "x" * 201])
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_name_that_is_none(url: str, verb: str, name: str) -> None:
    """A name that no queue can have is refused, and its control characters are not printed."""
    result = rota("queues", verb, name, url=url)
    refused(result, 2, "queue")
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    "words",
    [("queues", "list", "--queue"), ("jobs", "list", "--queue"), ("jobs", "list", "--task"),
     ("jobs", "retry", "--all-discarded", "--task")],
    ids=" ".join,
)  # fmt: skip
def test_a_filter_that_is_no_name(words: tuple[str, ...], tmp_path: Path) -> None:
    """An impossible name is refused before the database is asked."""
    refused(rota(*words, " ", url=f"sqlite:///{tmp_path}/none.db"), 2, "name", "' '")
