"""The counters against COUNT(*): at every moment, not only when it is quiet."""

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from rota.job import JobId, QueueRecord
from rota.settlement import Settlement
from rota.states import Move, State
from rota.store.operation import Begin, Statement
from rota.store.postgres import PostgresStore, counters, lookup, segments
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, Raw, begin, explained
from tests.store.postgres.test_fence import restore
from tests.store.postgres.test_history import History

NOTHING = Statement("nothing", "SELECT 0")
SQUEEZE = counters.SQUEEZE

# One statement, hence one snapshot: also while everybody works.
DIFFERENCE = f"""
WITH told AS (
    SELECT name, CASE WHEN state IN ('appended', 'claimed', 'removed') THEN 'available'
                      ELSE state END AS state,
           sum(CASE WHEN state IN ('claimed', 'removed') THEN -jobs ELSE jobs END) AS jobs
    FROM ({lookup.QUEUES.text}) AS counted WHERE state IS NOT NULL
    GROUP BY 1, 2
), found AS (
    SELECT queue, state, count(*) AS jobs FROM rota.job GROUP BY queue, state
)
(SELECT 'told', * FROM told WHERE jobs <> 0 EXCEPT SELECT 'told', * FROM found)
UNION ALL
(SELECT 'found', * FROM found EXCEPT SELECT 'found', * FROM told)
"""


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every tidying turns the rings, and a mark whenever one is asked for."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(segments, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


def right(db: Database) -> bool:
    """Whether the counters say what counting says."""
    return db.sql(DIFFERENCE) == []


def squeeze(db: Database) -> bool:
    """Write the totals down."""
    return db.own.run(db.store.squeeze())


def tidy(db: Database, rounds: int = 3) -> None:
    """Turn the rings."""
    for _ in range(rounds):
        db.own.run(db.store.tidy())


def queue(db: Database) -> QueueRecord:
    """What is told of the only queue."""
    [found] = db.own.run(db.store.queues())
    return found


def marks(db: Database) -> int:
    """The number of the newest mark."""
    return int(db.one("SELECT max(seq) FROM rota.tally_mark"))


# Histories ---------------------------------------------------------------------------------------


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
        begin(raw, Begin.READING)
        raw.execute("COMMIT")
        while not self._history.done.is_set():
            self.differences += raw.execute(DIFFERENCE).fetchall()
            self.looks += 1
            self._history.done.wait(0.01)

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
    history = History(db, seed, seconds=6.0)
    onlooker = Onlooker(history)
    history.beside.append(meddling(history))
    history.run()
    print(f"seed {seed}: {onlooker.looks} looks, {marks(db)} marks, {history.tidied}")  # noqa: T201
    assert onlooker.differences == []
    assert onlooker.looks > 50
    assert marks(db) > 100
    assert history.tidied["log emptied"] > 5
    assert history.tidied["tally emptied"] > 5
    assert right(db)


def forgetful(text: str, what: str, instead: str) -> Statement:
    """A squeeze that lacks something."""
    assert what in text
    return Statement("squeeze", text.replace(what, instead))


@pytest.mark.parametrize("mutant", ["no running", "no squeeze before a truncation"])
def test_a_mutant_counts_wrong(db: Database, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """The same histories are told wrong by marks without running transactions, and so on."""
    if mutant == "no running":
        forgets = (
            "(pg_snapshot_xmax(pg_current_snapshot())::text || ':' || "
            "pg_snapshot_xmax(pg_current_snapshot())::text || ':')::pg_snapshot, handed.out"
        )
        text = SQUEEZE.text
        squeezing = forgetful(text, "pg_current_snapshot(), handed.out", forgets)
        monkeypatch.setattr(counters, "SQUEEZE", squeezing)
        monkeypatch.setattr(segments, "SQUEEZE", squeezing)
    else:
        monkeypatch.setattr(segments, "SQUEEZE", lambda **_: NOTHING())
    history = History(db, 4711, seconds=2.0)
    # What is squeezed all the time is seldom truncated before it was counted.
    onlooker = Onlooker(history, squeezers=2 if mutant == "no running" else 0)
    history.run()
    assert onlooker.differences


# Each hazard by itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("squeezed", [True, False])
def test_rows_that_came_and_went_between_two_marks(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, squeezed: bool
) -> None:
    """A segment is counted before it is truncated; else what went through it is not."""
    if not squeezed:
        monkeypatch.setattr(segments, "SQUEEZE", lambda **_: NOTHING())
    squeeze(db)
    session = db.session()
    db.enqueue(30)
    db.settle(session, db.claim(session, 20), keep=KEEP)
    db.settle(session, db.claim(session, 10))
    db.enqueue(3)
    tidy(db)
    db.settle(session, db.claim_all(session))
    tidy(db)
    assert sum(db.sizes()) == 0
    assert right(db) == squeezed
    if squeezed:
        assert (queue(db).appended, queue(db).claimed) == (33, 33)
        assert queue(db).counts == {State.COMPLETED: 20}


ENDINGS: dict[str, tuple[str, ...]] = {
    "committed": ("COMMIT",),
    "prepared": ("PREPARE TRANSACTION 'late'", "COMMIT PREPARED 'late'"),
    "undone": ("ROLLBACK",),
    "partly": ("ROLLBACK TO SAVEPOINT part", "COMMIT"),
}
COUNTED = {"committed": 7, "prepared": 7, "undone": 0, "partly": 3}


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_a_transaction_that_was_running_at_several_marks(db: Database, ending: str) -> None:
    """What it brings counts when it has ended, once, and a part that was undone never."""
    late = db.bare(autocommit=True)
    late.execute("BEGIN")
    db.enqueue(2, conn=late, wake=False)
    db.enqueue(1, conn=late, wake=False, delay=600.0)
    late.execute("SAVEPOINT part")
    db.enqueue(4, conn=late, wake=False)
    for _ in range(3):
        db.enqueue(1)
        assert squeeze(db)
    assert right(db)
    assert queue(db).counts == {State.AVAILABLE: 3}
    for step in ENDINGS[ending]:
        late.execute(step)
        assert right(db)
    assert sum(queue(db).counts.values()) == 3 + COUNTED[ending]
    assert squeeze(db) == (COUNTED[ending] > 0)
    assert right(db)


WHEN = ["before", "meanwhile", "after", "never"]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("when", WHEN)
def test_jobs_that_are_taken_out_of_the_log(db: Database, when: str, *, kept: bool) -> None:
    """They are counted less exactly where a mark had counted them, whoever squeezes when."""
    late = db.bare()
    jobs = db.enqueue(2, conn=late) + db.enqueue(3)
    db.enqueue(4)
    if when == "before":
        squeeze(db)
    late.commit()
    doing: Any = db.store.cancel if kept else db.store.delete
    if when == "meanwhile":
        # The deletion has happened, and its transaction has not ended.
        held = db.bare()
        held.execute("LOCK TABLE rota.finished IN SHARE MODE")
        under_way = Later(db, doing(jobs))
        until(lambda: db.waits_for(under_way.pid, held.info.backend_pid) or None)
        assert squeeze(db)
        assert right(db)
        held.rollback()
        under_way.result()
    else:
        db.own.run(doing(jobs))
    assert right(db)
    assert queue(db).counts.get(State.AVAILABLE) == 4
    assert queue(db).appended == 9
    if when != "never":
        squeeze(db)
        assert right(db)
    tidy(db)
    assert right(db)


def test_without_the_condition_they_are_counted_twice(db: Database) -> None:
    """The mutant: rows that stand for jobs of the log count though a mark has counted those."""
    jobs = db.enqueue(3)
    squeeze(db)
    db.own.run(db.store.delete(jobs))
    assert right(db)
    db.sql("UPDATE rota.tally SET appended_by = NULL")
    assert not right(db)


def test_two_squeezers(db: Database) -> None:
    """The second one waits for the first, and leaves it at that or does it himself."""
    for ended in ("COMMIT", "ROLLBACK"):
        db.enqueue(3)
        first = db.bare(autocommit=True)
        first.execute("BEGIN")
        first.execute(SQUEEZE.text, {"age": 0.0})
        before = marks(db)
        second = Later(db, db.store.squeeze())
        until(
            lambda second=second, first=first: (  # type: ignore[misc]
                db.waits_for(second.pid, first.info.backend_pid) or None
            )
        )
        db.enqueue(2)
        first.execute(ended)
        assert second.result() == (ended == "ROLLBACK")
        assert marks(db) == before + 1
        assert right(db)


def test_rows_that_stay_in_the_tally_are_counted(db: Database) -> None:
    """A producer that does not commit keeps its table of the tally, and loses nothing."""
    late = db.bare()
    db.enqueue(5, conn=late, delay=600.0)
    for _ in range(3):
        db.enqueue(2, delay=600.0)
        tidy(db)
    assert db.one("SELECT pg_relation_size('rota.tally_0')") > 0
    late.commit()
    tidy(db)
    assert db.one("SELECT pg_relation_size('rota.tally_0')") == 0
    assert right(db)
    assert queue(db).counts == {State.SCHEDULED: 11}


# Squeezing ---------------------------------------------------------------------------------------


def test_nothing_is_written_where_nothing_has_changed(db: Database) -> None:
    """Squeezing again and again without work leaves the marks as they are."""
    session = db.session()
    assert not squeeze(db)
    works: list[Callable[[], object]] = [
        lambda: db.enqueue(1),
        lambda: db.enqueue(1, delay=600.0),
        lambda: db.settle(session, db.claim(session), keep=KEEP),
    ]
    for work in works:
        work()
        assert squeeze(db)
        assert not squeeze(db)
        assert right(db)


@pytest.mark.parametrize("keep", [0.0005, 1.0, 3600.0, 86_400.0, 1e9])
def test_jobs_are_kept_a_little_longer(db: Database, keep: float) -> None:
    """At least their retention, and at most 1/32 longer (or a millisecond)."""
    session = db.session()
    db.enqueue(2)
    one, other = db.claim(session, 2)
    db.settle(session, [one], keep=keep)
    result = Settlement(other.id, other.lease, Move.COMPLETE, 0.0, keep, "1")
    db.own.run(db.store.settle(session, [result]))
    for [kept] in db.sql("SELECT extract(epoch FROM keep_until - finished_at) FROM rota.finished"):
        assert keep <= float(kept) + 1e-5
        assert float(kept) <= keep + max(keep / 32, 0.001) + 1e-5


def test_many_expire_together(db: Database) -> None:
    """A day's retention makes no more than 33 kinds of completed jobs to keep totals of."""
    session = db.session()
    db.enqueue(100)
    for _ in range(100):
        db.settle(session, db.claim(session, 1), keep=86_400.0)
    assert db.one("SELECT count(DISTINCT keep_until) FROM rota.finished") <= 2


# Asking ------------------------------------------------------------------------------------------


def test_asking_squeezes_where_much_has_come(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a worker, whoever asks makes it cheap for the next one."""
    monkeypatch.setattr(lookup, "MUCH", 100)
    db.enqueue(99)
    before = marks(db)
    assert queue(db).counts == {State.AVAILABLE: 99}
    assert marks(db) == before
    db.enqueue(1)
    assert queue(db).counts == {State.AVAILABLE: 100}
    assert marks(db) == before + 1
    assert queue(db).counts == {State.AVAILABLE: 100}
    assert marks(db) == before + 1


def test_asking_where_nothing_may_be_written(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby, or a user that may only read, gets the same answer."""
    monkeypatch.setattr(lookup, "MUCH", 1)
    db.enqueue(7)
    before = marks(db)
    separator = "&" if "?" in db.url else "?"
    reader = PostgresStore(f"{db.url}{separator}options=-c%20default_transaction_read_only%3Don")
    with closing(reader.connect()) as own:
        for _ in range(2):
            [found] = own.run(reader.queues())
            assert found.counts == {State.AVAILABLE: 7}
    assert marks(db) == before


def test_behind_a_pooler(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking and squeezing work in transactions that somebody else began, too."""
    monkeypatch.setattr(lookup, "MUCH", 1)
    db.enqueue(7)
    separator = "&" if "?" in db.url else "?"
    pooled = PostgresStore(f"{db.url}{separator}pooler=transaction")
    with closing(pooled.connect()) as own:
        [found] = own.run(pooled.queues())
        assert found.counts == {State.AVAILABLE: 7}
        assert marks(db) == 1
        db.enqueue(1)
        assert own.run(pooled.squeeze())
    assert right(db)


def reading(db: Database) -> int:
    """The buffers that asking touches."""
    raw = db.bare(autocommit=True)
    begin(raw, Begin.READING)
    plan = explained(raw, lookup.QUEUES())
    raw.execute("ROLLBACK")
    raw.close()
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def test_asking_costs_the_same_for_a_thousand_jobs_and_for_many(db: Database) -> None:
    """What is available, waits or is finished is not looked at."""
    session = db.session()
    costs = []
    for count in (1000, 99_000):
        db.enqueue(count)
        db.enqueue(count // 10, delay=600.0)
        db.settle(session, db.claim(session, count // 10), keep=KEEP)
        squeeze(db)
        costs.append(reading(db))
        assert right(db)
    few, many = costs
    assert many <= few + 20, costs
    assert many < 200, costs


def test_counting_would_cost_more(db: Database) -> None:
    """The measure has teeth: without a squeeze the log is walked."""
    db.enqueue(1000)
    few = reading(db)
    db.enqueue(30_000)
    assert reading(db) > 10 * few


@pytest.fixture
def held(db: Database) -> Raw:
    """A snapshot that is older than everything, in a transaction with an id."""
    raw = db.bare(name="held")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lane")
    return raw


def test_asking_under_a_held_snapshot(db: Database, held: Raw) -> None:
    """Dead leases, old marks and old changes stay where they are, and nobody walks them."""
    session = db.session()

    def work(claims: int) -> tuple[int, int]:
        for _ in range(claims // 100):
            db.enqueue(100)
            for _ in range(100):
                db.settle(session, db.claim(session, 1), keep=KEEP)
            squeeze(db)
        db.enqueue(50)
        db.claim(session, 10)
        squeeze(db)
        raw = db.bare(autocommit=True)
        begin(raw, Begin.HASTY)
        plan = explained(raw, SQUEEZE(age=0.0))
        raw.execute("ROLLBACK")
        raw.close()
        db.settle(session, db.claim_all(session))
        return reading(db), int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    work(100)
    before = work(100)
    after = work(2000)
    assert right(db)
    assert after[0] <= 1.5 * before[0] + 30, (before, after)
    assert after[1] <= 1.5 * before[1] + 30, (before, after)
    held.rollback()


# After a restore ---------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [True, False])
def test_a_restored_database_is_counted_anew(db: Database, *, marked: bool) -> None:
    """The totals of another cluster's transactions are made anew; running totals go on growing."""
    session = db.session()
    jobs = db.enqueue(20)
    db.enqueue(4, delay=600.0)
    db.settle(session, db.claim(session, 3), keep=KEEP)
    db.settle(session, db.claim(session, 2), Move.DISCARD)
    db.settle(session, db.claim(session, 1), Move.RETRY)
    db.claim(session, 2)
    if marked:
        squeeze(db)
    db.own.run(db.store.cancel(jobs[-3:-1]))
    before = queue(db)
    restore(db)
    assert not squeeze(db)
    db.session()
    assert right(db)
    after = queue(db)
    back = before.counts[State.RUNNING]
    assert after.counts[State.AVAILABLE] == before.counts[State.AVAILABLE] + back
    for state in (State.SCHEDULED, State.RETRYABLE, State.COMPLETED, State.DISCARDED):
        assert after.counts[state] == before.counts[state]
    assert after.claimed == before.claimed
    assert squeeze(db)
    db.enqueue(3)
    db.settle(db.session(), db.claim_all(db.session()))
    tidy(db)
    assert right(db)
