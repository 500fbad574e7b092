"""Queues and keys that nothing is in any more: they cost a worker nothing, until their next job."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import Limit
from rota.model.states import Move
from rota.store import queue_names
from rota.store.migrate import migrate
from rota.store.sqlite import idle
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import claim, enqueue, open_session, settle, settlement
from tests.store.keying import fair, keys_of, limited

MANY = 400
ONE = Limit(key="{key}", running=1)
STEPS = 100
"""Instructions of SQLite's machine between two calls."""


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store in a new file."""
    return SqliteStore(tmp_path / "rota.db")


@pytest.fixture
def connection(store: SqliteStore) -> Iterator[SqliteConnection]:
    """A connection to it."""
    with closing(store.connect()) as connection:
        migrate(store, connection)
        yield connection


def cost(store: SqliteStore, connection: SqliteConnection, queues: list[str]) -> int:
    """How many hundreds of instructions a look at these queues takes, and a claim that finds nothing."""
    session = open_session(store, connection)
    calls = 0

    def count() -> int:
        nonlocal calls
        calls += 1
        return 0

    connection.database().set_progress_handler(count, STEPS)
    connection.run(store.look(queues))
    assert connection.run(store.claim(session, queues, 10, woken=True)) == []
    connection.database().set_progress_handler(None, 0)
    return calls


def used_up(store: SqliteStore, connection: SqliteConnection, queue: str) -> None:
    """Many keys of a queue have had a job each."""
    limited(store, connection, [f"user {number}" for number in range(MANY)], ONE, queue=queue)
    session = open_session(store, connection)
    while jobs := claim(store, connection, session, 100, queues=(queue,)):
        settle(store, connection, session, *[settlement(job, Move.COMPLETE) for job in jobs])


@pytest.mark.parametrize("few", [False, True])
def test_idle_keys_cost_nothing(
    store: SqliteStore, connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    """A claim looks at keys with jobs alone, unless many have some."""
    before = cost(store, connection, ["default"])
    used_up(store, connection, "default")
    if few:
        monkeypatch.setattr(idle, "MANY_LANES", -1)
    assert (cost(store, connection, ["default"]) < before + 10) != few


def test_idle_queues_cost_nothing(store: SqliteStore, connection: SqliteConnection) -> None:
    """A look at hundreds of queues costs what one at a few does; only the list is longer."""
    names = [f"tenant-{number}" for number in range(MANY)]
    assert cost(store, connection, names) < cost(store, connection, names[:5]) + 10


@pytest.mark.parametrize("most", [0, 3, 200])
def test_the_next_jobs(
    store: SqliteStore, connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Of idle queues and keys they are seen and claimed in their turn, few or many."""
    used_up(store, connection, "tenant-3")
    for module, name in ((queue_names, "MANY"), (queue_names, "MANY_USED"), (idle, "MANY_LANES")):
        monkeypatch.setattr(module, name, most)
    names = [f"tenant-{number}" for number in range(MANY)]
    session = open_session(store, connection)
    assert not connection.run(store.look(names)).available
    [last] = enqueue(store, connection, 1, queue="tenant-300", priority=5)
    enqueue(store, connection, 1, queue="elsewhere")
    assert connection.run(store.look(names)).available
    limited(store, connection, ["user 7", "user 7", "user 8"], ONE, queue="tenant-3")
    jobs = claim(store, connection, session, 10, queues=tuple(names))
    assert keys_of(jobs[:2]) == ["user 7", "user 8"]
    assert [job.id for job in jobs[2:]] == [last]
    # The key's limit has no place: nothing to wake up for.
    assert not connection.run(store.look(names)).available
    settle(store, connection, session, settlement(jobs[0], Move.COMPLETE))
    assert connection.run(store.look(names)).available
    assert keys_of(claim(store, connection, session, 10, queues=tuple(names))) == ["user 7"]


@pytest.mark.parametrize("most", [0, 500])
def test_the_key_that_was_served_longest_ago_comes_first(
    store: SqliteStore, connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Also where the lanes come from the jobs, which are in another order."""
    monkeypatch.setattr(idle, "MANY_LANES", most)
    session = open_session(store, connection)
    fair(store, connection, ["a", "b", "c"] * 3)
    served = [keys_of(claim(store, connection, session, 1))[0] for _ in range(6)]
    assert served == ["a", "b", "c"] * 2
