"""The everyday settlement is one statement; whatever is not everyday goes its long way."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.postgres import settle, settle_write
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.listener import IDS
from rota.store.postgres.store import PostgresStore
from tests.store.factories import settlement
from tests.store.postgres.database import KEEP, Database

AT_ONCE = ["settle_at_once"]
IN_STEPS = ["settle_whole", "settle_complete"]


@pytest.fixture
def asked(db: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that Rota's own connection runs from now on."""
    return recorded(db.own, monkeypatch)


def recorded(connection: PostgresConnection, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that a connection runs from now on."""
    names: list[str] = []
    real = connection._execute

    def execute(request: Any) -> object:
        if hasattr(request, "statement"):
            names.append(request.statement.name)
        return real(request)

    monkeypatch.setattr(connection, "_execute", execute)
    return names


def counts(db: Database) -> dict[str, int]:
    """How many jobs are in each state."""
    [queue] = db.own.run(db.store.queues())
    return {state.value: count for state, count in queue.counts.items() if count}


def run(db: Database, settlements: list[Settlement], session: Any) -> list[Any]:
    """Have them written."""
    return db.own.run(db.store.settle(session, settlements))


def test_the_texts_are_the_same() -> None:
    """As those of the statements that it stands for."""

    def words(text: str) -> str:
        return " ".join(text.split())

    whole = words(settle.SETTLE_WHOLE.text)
    complete = words(settle_write.SETTLE_COMPLETE.text)
    at_once = words(settle.SETTLE_AT_ONCE.text)
    begin, ended, counted = (
        complete.partition("FROM kept, unnest")[0],
        *(complete.partition("FROM kept, unnest")[2].split(" ) INSERT INTO rota.tally")),
    )
    assert f"WITH freed AS ( {whole} AS waited )" in at_once
    assert begin.removeprefix("WITH ") + "FROM freed, kept, unnest" + ended in at_once
    assert "counted AS ( INSERT INTO rota.tally" + counted in at_once
    gone = words(settle.SETTLE_GONE_AT_ONCE.text)
    assert f"WITH freed AS ( {whole} AS waited )" in gone
    assert gone.rpartition(" ) ")[2] == at_once.rpartition(" ) ")[2]


@pytest.mark.parametrize("count", [1, 7, IDS, IDS + 1])
def test_one_lease(db: Database, asked: list[str], count: int) -> None:
    """However many jobs it has, also where their ids do not fit into a notification."""
    session = db.session()
    db.enqueue(count)
    jobs = db.claim(session, count)
    asked.clear()
    assert run(db, [settlement(job, Move.COMPLETE) for job in jobs], session) == []
    assert asked == AT_ONCE
    assert counts(db) == {"completed": count}


@pytest.mark.parametrize(
    ("change", "besides"),
    [
        (lambda one: one._replace(result="1"), {"settle_complete", "settle_finish"}),
        (lambda one: one._replace(keep=0.0), {"settle_complete", "settle_gone"}),
        (lambda one: one._replace(keep=2 * KEEP), {"settle_complete"}),
        (lambda one: one._replace(move=Move.SNOOZE), {"settle_complete", "settle_wait"}),
    ],
)
def test_what_is_not_everyday(
    db: Database, asked: list[str], change: Callable[[Settlement], Settlement], besides: set[str]
) -> None:
    """One job of two ends otherwise."""
    session = db.session()
    db.enqueue(2)
    one, two = db.claim(session)
    asked.clear()
    both = [settlement(one, Move.COMPLETE), change(settlement(two, Move.COMPLETE))]
    assert run(db, both, session) == []
    assert {*asked} == {"settle_whole", *besides}
    assert db.sql("SELECT FROM rota.lease") == []


def test_a_part_of_a_lease(db: Database, asked: list[str]) -> None:
    """Nothing is settled by the first statement; the others do it."""
    session = db.session()
    db.enqueue(2)
    one, _ = db.claim(session)
    asked.clear()
    assert run(db, [settlement(one, Move.COMPLETE)], session) == []
    assert asked == ["settle_at_once", "settle_whole", "settle_fence", "settle_complete"]
    assert counts(db) == {"completed": 1, "running": 1}


def test_behind_a_pooler(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single statement would be planned without Rota's settings there."""
    session = db.session()
    db.enqueue(1)
    [job] = db.claim(session)
    url = f"{db.url}&pooler=transaction"
    with closing(PostgresStore(url)) as store, closing(store.connect()) as pooled:
        asked = recorded(pooled, monkeypatch)
        assert pooled.run(store.settle(session, [settlement(job, Move.COMPLETE)])) == []
    assert asked == IN_STEPS
