"""`fetchq`: its counters, its upsert, and what its article says that does not hold."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, LiteralString

import psycopg
import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategies.fetchq import PICK, RESCHEDULE
from rota_lab.strategy import Job
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand

if TYPE_CHECKING:
    from rota_lab.databases import Connection

COUNTING = (
    "select from pg_stat_activity where datname = current_database()"
    " and pid <> pg_backend_pid() and query like 'select count(*) from tasks%'"
)

PRINTED_COMPLETE: LiteralString = """
    WITH
    completed_tasks AS (
        UPDATE tasks SET
            attempts = 0,
            iterations = iterations + 1,
            next_iteration = NOW() + INTERVAL '1 year'
        WHERE subject IN (
            SELECT subject FROM tasks
            WHERE subject = %s
            LIMIT 1
            FOR UPDATE FOR UPDATE SKIP LOCKED
        ) RETURNING *
    ),
    increment_pln AS (
        INSERT INTO metrics AS t (metric, amount)
        SELECT 'pln', (
            SELECT COUNT(subject) FROM completed_tasks
            WHERE next_iteration > NOW()
        )
        ON CONFLICT (metric) DO
        UPDATE SET amount = t.amount + EXCLUDED.amount
    ),
    increment_pnd AS (
        INSERT INTO metrics AS t (metric, amount)
        SELECT 'pnd', 0 - ((
            SELECT COUNT(subject) FROM completed_tasks
        ) - (
            SELECT COUNT(subject) FROM completed_tasks
            WHERE next_iteration < NOW()
        ))
        ON CONFLICT (metric) DO
        UPDATE SET amount = t.amount + EXCLUDED.amount
    )
    SELECT * FROM tasks WHERE subject IN (SELECT subject FROM completed_tasks)
"""


@pytest.fixture
def queue(trial: Callable[..., Trial], request: pytest.FixtureRequest) -> Iterator[Queue]:
    """An empty queue; a parameter is its settings."""
    settings: Mapping[str, float] = getattr(request, "param", {})
    with trial("fetchq", Database.POSTGRES, **settings).fresh() as queue:
        yield queue


@pytest.fixture
def db(queue: Queue) -> "Connection":
    """The test's connection."""
    return queue.strategy.db


def counted(db: "Connection") -> dict[str, int]:
    """The counters that are not 0."""
    return {row.metric: row.amount for row in db.rows("select * from metrics") if row.amount}


@pytest.mark.parametrize("queue", [{"reschedule": 1}, {"reschedule": 0}], indirect=True)
def test_the_counters_follow_a_task(queue: Queue, db: "Connection") -> None:
    """Pending, at work, and then planned or gone."""
    seen: list[dict[str, int]] = []
    queue.strategy.enqueue([Job("1"), Job("2")])
    queue.strategy.enqueue([Job("2")])
    assert counted(db) == {"pnd": 2}
    hand = Hand(queue, holds=True).start()
    assert hand.at_work.wait(LONG)
    seen.append(counted(db))
    hand.join()
    seen.append(counted(db))
    planned = {"pln": 2} if queue.strategy.settings["reschedule"] else {}
    assert seen == [{"pnd": 1, "wip": 1}, planned]
    assert db.rows("select count(*) from tasks")[0][0] == len(planned) * 2
    assert queue.strategy.left() == 0


def test_the_counters_as_printed_do_not_add_up(queue: Queue, db: "Connection") -> None:
    """One task was picked and completed: one pending too few, and one at work for ever."""
    queue.strategy.enqueue([Job("1")])
    assert db.row(PICK, 300.0) is not None
    db.rows(PRINTED_COMPLETE, "1")
    assert counted(db) == {"pnd": -1, "wip": 1, "pln": 1}


def test_the_counters_drift_when_a_worker_dies(queue: Queue, db: "Connection") -> None:
    """No counter follows when a lock expires; the next pick counts the task a second time."""
    queue.strategy.enqueue([Job("1")])
    for _ in range(2):
        assert db.row(PICK, 300.0) is not None
        db.execute("update tasks set next_iteration = now()")
    db.execute(RESCHEDULE, "1")
    assert counted(db) == {"pnd": -1, "wip": 1, "pln": 1}


def test_picks_wait_for_each_other_at_the_counters(queue: Queue, db: "Connection") -> None:
    """Two workers pick different tasks, and both need the row of the same counter."""
    queue.strategy.enqueue([Job("1"), Job("2")])
    db.row(PICK, 300.0)
    db.execute("update tasks set next_iteration = now()")
    with closing(Bystander(queue)) as bystander:
        bystander.hold("select * from metrics where metric = 'wip' for update")
        first, second = Hand(queue).start(), Hand(queue).start()
        until(lambda: bystander.waiting() == 2, "both picks to wait")
        assert first.worked == second.worked == []
        bystander.release()
        first.join()
        second.join()
    assert sorted(first.worked + second.worked) == ["1", "2"]


@pytest.mark.parametrize("queue", [{"upsert": 1}], indirect=True)
def test_an_upsert_hands_out_what_is_at_work(queue: Queue) -> None:
    """It sets `next_iteration`, which is the lock, too."""
    queue.strategy.enqueue([Job("1")])
    first = Hand(queue, holds=True).start()
    assert first.at_work.wait(LONG)
    queue.strategy.enqueue([Job("1")])
    second = Hand(queue).start()
    second.join()
    first.join()
    assert first.worked == second.worked == ["1"]


@pytest.mark.parametrize("queue", [{"upsert": 1}], indirect=True)
def test_an_upsert_counts_by_what_was_and_what_is(queue: Queue, db: "Connection") -> None:
    """A task that was planned is pending; a new one is, too; one that was pending still is."""
    queue.strategy.enqueue([Job("1"), Job("2")])
    db.row(PICK, 300.0)
    db.execute(RESCHEDULE, "1")
    assert counted(db) == {"pnd": 1, "pln": 1}
    queue.strategy.enqueue([Job("1"), Job("2"), Job("3")])
    assert counted(db) == {"pnd": 3}


def test_a_drain_waits_for_what_expires(queue: Queue, db: "Connection") -> None:
    """A worker that finds nothing stays while a task is picked, and gets it when it is due again."""
    queue.strategy.enqueue([Job("1")])
    db.row(PICK, 300.0)
    hand = Hand(queue).start()
    until(lambda: hand.ended or db.rows(COUNTING), "the worker to find nothing")
    db.execute("update tasks set next_iteration = now()")
    hand.join()
    assert hand.worked == ["1"]


def test_five_attempts_are_all(queue: Queue, db: "Connection") -> None:
    """A task whose workers all die is left alone, and is not waited for."""
    queue.strategy.enqueue([Job("1")])
    for attempt in range(1, 6):
        task = db.row(PICK, 300.0)
        assert task is not None
        assert task.attempts == attempt
        assert queue.strategy.left() == 1
        db.execute("update tasks set next_iteration = now()")
    assert db.row(PICK, 300.0) is None
    assert queue.strategy.left() == 0


def test_the_printed_pick_returns_what_was(queue: Queue, db: "Connection") -> None:
    """Its outer select sees the table as it was before the statement."""
    queue.strategy.enqueue([Job("1")])
    printed = """
        with picked_tasks as (
            update tasks set attempts = attempts + 1,
                next_iteration = now() + interval '5 minutes'
            where subject = '1'
            returning subject
        )
        select *, next_iteration <= now() as due from tasks
        where subject in (select subject from picked_tasks)
    """
    row = db.row(printed)
    assert row is not None
    assert (row.attempts, row.due) == (0, True)
    assert db.rows("select attempts from tasks")[0].attempts == 1


def test_the_first_printed_complete_names_a_column_that_is_not_there(db: "Connection") -> None:
    """`iteration`."""
    with pytest.raises(psycopg.errors.UndefinedColumn, match='"iteration"'):
        db.execute(
            "update tasks set attempts = 0, iteration = iteration + 1, last_iteration = now(),"
            " next_iteration = now() + interval '1 year' where subject = 'task3'"
        )


@pytest.mark.parametrize("queue", [{"time_index": 1}, {"time_index": 0}], indirect=True)
def test_now_is_no_reason_for_a_full_scan(queue: Queue, db: "Connection") -> None:
    """With an index for it, the condition on now() walks that index."""
    db.execute(
        "insert into tasks (subject, next_iteration)"
        " select n, now() + n * interval '1 second' from generate_series(-10, 9989) n"
    )
    db.execute("analyze tasks")
    plan = "\n".join(
        row[0]
        for row in db.rows(
            "explain select * from tasks where next_iteration <= now() and attempts < 5"
            " order by next_iteration asc, attempts asc limit 1"
        )
    )
    indexed = bool(queue.strategy.settings["time_index"])
    assert (re.search(r"Index Cond: .*next_iteration <= now\(\)", plan) is not None) is indexed
    assert ("Seq Scan on tasks" in plan) is not indexed
