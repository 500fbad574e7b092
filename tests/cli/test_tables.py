"""How tables fit into a terminal."""

import pytest

from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.terminal.tables import Column, fitted, shortened
from tests.cli.calling import rota
from tests.store.factories import enqueue, one_of_each

COLUMNS = (
    Column("id"),
    Column("queue"),
    Column("completed", "compl.", rank=2),
    Column("attempt", rank=1),
    Column("paused", spare=True),
    Column("note", prose=True),
)
TEXTS = [["4711", "newsletter-weekly", "0", "1/5", "", "ValueError: no such address at all here"]]


def titles(width: int, texts: list[list[str]] = TEXTS) -> list[str]:
    """The headings that are shown in so many characters."""
    return [column.title for column in fitted(COLUMNS, texts, width)]


def test_room_for_all() -> None:
    """With room enough every column is there but the empty ones; prose gets what is left."""
    assert titles(100) == ["id", "queue", "completed", "attempt", "note"]
    assert [column.width for column in fitted(COLUMNS, TEXTS, 75)] == [4, 17, 9, 7, 30]
    assert "paused" in titles(100, [["1", "mail", "0", "1/5", "yes", ""]])


def test_little_room() -> None:
    """First headings become short, then columns go by their rank; names stay whole."""
    assert titles(68) == ["id", "queue", "compl.", "attempt", "note"]
    assert titles(65) == ["id", "queue", "attempt", "note"]
    assert titles(55) == titles(5) == ["id", "queue", "note"]
    assert [column.width for column in fitted(COLUMNS, TEXTS, 5)] == [4, 17, 24]


@pytest.mark.parametrize("width", range(40, 120))
def test_never_wider_than_it_must(width: int) -> None:
    """The columns fit, as soon as those that always stay do."""
    shown = fitted(COLUMNS, TEXTS, width)
    assert sum(column.width for column in shown) + 2 * (len(shown) - 1) <= max(width, 49)


@pytest.mark.parametrize(
    ("width", "text"),
    [(50, "no such address"), (15, "no such address"), (14, "no such…"), (8, "no such…"),
     (7, "no…"), (3, "no…"), (2, "n…")],
)  # fmt: skip
def test_words_stay_whole(width: int, text: str) -> None:
    """Prose ends after a word."""
    assert shortened("no such address", width) == text


@pytest.mark.parametrize(
    "words", [("queues", "list"), ("jobs", "list"), ("top", "--once", "--every", "0.1s")],
    ids=" ".join,
)  # fmt: skip
def test_eighty_columns(
    store: Store,
    store_url: str,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    """In a terminal of 80 columns each row is one line, with its names whole, whatever it counts."""
    one_of_each(store, connection)
    enqueue(store, connection, queue="newsletter-weekly", task="shop.send_newsletter")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("rota.terminal.output.on_terminal", lambda: True)
    shown = rota(*words, url=store_url).stdout
    # Not the address, nor the sentence about a session of some other test.
    prose = store_url.partition("?")[0], "Oldest transaction: "
    lines = [line for line in shown.splitlines() if not any(part in line for part in prose)]
    assert max(map(len, lines)) <= 80
    [row] = [line for line in lines if "newsletter-weekly" in line]
    if words[0] == "jobs":
        assert "shop.send_newsletter" in row
        assert len([line for line in lines if line.split()[:1] and line.split()[0].isdigit()]) == 8
    heading = next(line for line in lines if "queue" in line)
    assert "block" not in heading
    if words[0] == "queues":
        assert {State.AVAILABLE.value, "avail."} & set(heading.split())
