"""Random histories in which the counters are compared with COUNT(*) at every moment."""

import random
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from rota.model.job import JobId
from rota.store.operation import Statement
from rota.store.postgres import clearing, counters, rings
from rota.store.postgres.connection import PLANNER
from tests.fixtures.large import LARGE
from tests.store.postgres.counting import DIFFERENCE, marks, right
from tests.store.postgres.database import Database
from tests.store.postgres.test_history import History

NOTHING = Statement("nothing", "SELECT 0")
SQUEEZE = counters.SQUEEZE


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every tidying turns the rings, and a mark whenever one is asked for."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


class Onlooker:
    """Compares, again and again, while a history goes on."""

    def __init__(self, history: History, squeezers: int = 2) -> None:
        self._history = history
        self.looks = 0
        self.differences: list[tuple[Any, ...]] = []
        history.beside += [self.look, *[self.squeeze] * squeezers]

    def look(self) -> None:
        """Compare the counters with the jobs."""
        raw = self._history.db.bare(autocommit=True)
        raw.execute(PLANNER)
        while not self._history.done.is_set():
            began = time.monotonic()
            self.differences += raw.execute(DIFFERENCE).fetchall()
            self.looks += 1
            # A look locks all tables: on a slow machine none would ever be truncated between two.
            self._history.done.wait(0.01 + time.monotonic() - began)

    def squeeze(self) -> None:
        """Write totals down as fast as it goes."""
        store = self._history.db.store
        with closing(store.connect()) as own:
            while not self._history.done.is_set():
                own.run(store.squeeze())


def meddling(history: History) -> Callable[[], None]:
    """Cancels, deletes and retries jobs, whatever they are at."""

    def work() -> None:
        db = history.db
        chance = random.Random(f"{history.seed} meddler")
        with closing(db.store.connect()) as own:
            while not history.done.is_set():
                newest = db.one("SELECT last_value FROM rota.job_id")
                some = [JobId(chance.randint(1, newest)) for _ in range(chance.choice((1, 20)))]
                doing: Any = chance.choice((db.store.cancel, db.store.delete, db.store.retry))
                own.run(doing(some))
                history.done.wait(0.01)

    return work


def test_the_counters_are_right_at_every_moment(db: Database) -> None:
    """Whatever commits late, rolls back, is prepared, meddled with, squeezed and truncated."""
    seed = random.randrange(2**32)
    history = History(db, seed, seconds=4.0 if LARGE else 1.0)
    onlooker = Onlooker(history)
    some = 60 if LARGE else 20
    history.enough = lambda: (
        history.tidied["log emptied"] > 0
        and history.tidied["tally emptied"] > 0
        and onlooker.looks > 2
        and marks(db) > some
    )
    history.beside.append(meddling(history))
    history.run()
    print(f"seed {seed}: {onlooker.looks} looks, {marks(db)} marks, {history.tidied}")  # noqa: T201
    assert onlooker.differences == []
    assert onlooker.looks > 2
    assert marks(db) > some
    assert history.tidied["log emptied"] > 0
    assert history.tidied["tally emptied"] > 0
    assert right(db)


def forgetful(text: str, what: str, instead: str) -> Statement:
    """A squeeze that lacks something."""
    assert what in text
    return Statement("squeeze", text.replace(what, instead))


@pytest.mark.large
@pytest.mark.parametrize("mutant", ["no running", "no squeeze before a truncation"])
def test_a_mutant_counts_wrong(db: Database, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """The same histories are told wrong by marks without running transactions, and so on."""
    if mutant == "no running":
        forgets = (
            "(pg_snapshot_xmax(pg_current_snapshot())::text || ':' || "
            "pg_snapshot_xmax(pg_current_snapshot())::text || ':')::pg_snapshot AS snapshot"
        )
        text = SQUEEZE.text
        squeezing = forgetful(text, "pg_current_snapshot() AS snapshot", forgets)
        monkeypatch.setattr(counters, "SQUEEZE", squeezing)
        monkeypatch.setattr(rings, "SQUEEZE", squeezing)
    else:
        for module in (rings, clearing):
            monkeypatch.setattr(module, "SQUEEZE", lambda **_: NOTHING())
        monkeypatch.setattr(
            clearing, "TALLY_COUNTED", lambda **_: Statement("one", "SELECT true")()
        )
    # The names of prepared transactions, which a server has once, begin with it.
    history = History(db, 4711 if mutant == "no running" else 4712, seconds=2.0)
    # What is squeezed all the time is seldom truncated before it was counted.
    onlooker = Onlooker(history, squeezers=2 if mutant == "no running" else 0)
    history.enough = lambda: bool(onlooker.differences)
    history.run()
    assert onlooker.differences
