"""Memory in PostgreSQL: its ring, what follows finished jobs, and signals in open transactions."""

from typing import Any

import psycopg
import pytest

from rota import Unique
from rota.model.job import ClaimedJob, JobId, Keys, Order
from rota.model.memory import FOR_EVER, Holder, Kind, Pause
from rota.model.states import Move, State
from rota.store.postgres import clearing, rings
from rota.store.postgres.long_kept import FINISHED_MOVE
from tests.store.factories import claim, enqueue, running, settle, settlement, spec_of
from tests.store.postgres.database import Database


def held(db: Database, **steps: str) -> Holder:
    """A job in the hands of a worker, with these steps."""
    session, [job] = running(db.store, db.own)
    holder = Holder(session, job.lease, job.id)
    for name, value in steps.items():
        assert db.own.run(db.store.memory.remember(holder, name, value))
    return holder


def known(db: Database, job: JobId) -> list[str]:
    return [row.name for row in db.own.run(db.store.memory.load([job])).get(job, [])]


def end(db: Database, holder: Holder, move: Move, **rest: Any) -> None:
    job = ClaimedJob(holder.job, holder.lease, "shop.send", "{}", "default", 0, 1, 5, None, 0.0)
    assert settle(db.store, db.own, holder.session, settlement(job, move, **rest)) == []


def sleep_for_a_signal(db: Database, holder: Holder) -> None:
    pauses = (Pause(Kind.WAIT, "go", FOR_EVER, "go"),)
    end(db, holder, Move.SNOOZE, delay=FOR_EVER, pauses=pauses)


def turn(db: Database) -> int:
    """Leave the current table of memory; which one it was."""
    [(before,)] = db.admin.execute("SELECT last_value % 2 FROM rota.memory_turn").fetchall()
    db.admin.execute(rings.MEMORY_TURN.text)
    return int(before)


def empty(db: Database, slot: int) -> bool:
    """Clear the table that was left, and truncate it."""
    while not db.own.run(clearing.clear_slot("memory", slot)):
        pass
    return bool(db.own.run(rings.empty_slot("memory", slot)))


def rows(db: Database, table: str) -> int:
    [(count,)] = db.admin.execute(f"SELECT count(*) FROM rota.{table}").fetchall()
    return int(count)


def test_what_counts_is_copied_before_the_table_is_emptied(db: Database) -> None:
    """Memory of running, waiting and finished jobs stays; that of jobs that are gone does not."""
    runs = held(db, charge="1")
    sleeps = held(db, book="2")
    sleep_for_a_signal(db, sleeps)
    done = held(db, ship="3")
    end(db, done, Move.COMPLETE)
    gone = held(db, drop="4")
    end(db, gone, Move.COMPLETE, keep=0.0)
    db.admin.execute("DELETE FROM rota.log WHERE id = %s", [gone.job])
    slot = turn(db)
    assert not db.own.run(clearing.clear_slot("memory", slot))
    # A dump that began before finds everything in both tables.
    assert known(db, runs.job) == ["charge"]
    assert empty(db, slot)
    assert rows(db, f"memory_{slot}") == 0
    assert known(db, runs.job) == ["charge"]
    assert known(db, sleeps.job) == ["book", "go"]
    assert known(db, done.job) == ["ship"]
    assert known(db, gone.job) == []
    # What waits is still woken.
    db.own.run(db.store.memory.signal(sleeps.job, "go", "1", None))
    assert db.own.run(db.store.stage(10)).staged == 1


def test_what_came_since_keeps_the_table(db: Database) -> None:
    """A table is not truncated while it has something that was not copied before."""
    holder = held(db, charge="1")
    slot = turn(db)
    assert not db.own.run(clearing.clear_slot("memory", slot))
    # A worker that has not noticed the turn writes to the table that was left.
    db.admin.execute(
        "INSERT INTO rota.memory (slot, job, kind, name, value) VALUES (%s, %s, 'step', 'late', '1')",
        [slot, holder.job],
    )
    assert db.own.run(rings.empty_slot("memory", slot)) == []
    assert known(db, holder.job) == ["charge", "late"]
    assert empty(db, slot)
    assert known(db, holder.job) == ["charge", "late"]


def test_rounds_that_ended_are_not_copied(db: Database) -> None:
    """A job that comes round again and again does not make the ring longer."""
    holder = held(db, charge="1")
    end(db, holder, Move.AGAIN, remembers=True)
    db.own.run(db.store.stage(10))
    [job] = claim(db.store, db.own, holder.session)
    holder = holder._replace(lease=job.lease)
    db.own.run(db.store.memory.remember(holder, "charge", "2"))
    slot = turn(db)
    assert empty(db, slot)
    assert known(db, holder.job) == ["charge"]
    assert rows(db, "memory") == 2


def test_a_retry_beside_the_copying(db: Database) -> None:
    """A job that is just being retried keeps its memory: the table is not emptied meanwhile."""
    holder = held(db, charge="1")
    end(db, holder, Move.DISCARD)
    slot = turn(db)
    with db.admin.transaction():
        db.admin.execute("DELETE FROM rota.finished WHERE id = %s", [holder.job])
        assert not db.own.run(clearing.clear_slot("memory", slot))
        assert db.own.run(rings.empty_slot("memory", slot)) == []
        raise psycopg.Rollback
    assert empty(db, slot)
    assert rows(db, "finished_memory_discarded") == 1
    assert db.own.run(db.store.retry([holder.job])) == [holder.job]
    assert rows(db, "finished_memory") == 0
    assert known(db, holder.job) == ["charge"]


def test_memory_goes_with_the_segment(db: Database) -> None:
    """What finished jobs remember lies in the segment of their job, and is truncated with it."""
    holder = held(db, charge="1")
    end(db, holder, Move.COMPLETE)
    assert empty(db, turn(db))
    [(segment,)] = db.admin.execute("SELECT segment FROM rota.finished").fetchall()
    assert rows(db, f"finished_memory_{segment}") == 1
    db.admin.execute("UPDATE rota.finished SET keep_until = now() - interval '1 hour'")
    db.admin.execute(rings.FINISHED_TURN.text, {"by": 1})
    assert db.own.run(rings.empty_finished(segment))
    assert rows(db, "finished_memory") == 0


def test_memory_moves_with_its_job(db: Database) -> None:
    """A job that is kept longer than its segment takes along what it remembers."""
    holder = held(db, charge="1")
    end(db, holder, Move.COMPLETE)
    assert empty(db, turn(db))
    [(segment,)] = db.sql("SELECT segment FROM rota.finished")
    db.admin.execute(rings.FINISHED_TURN.text, {"by": 1})
    blocks = {"segment": segment, "first": "(0,0)", "until": "(100,0)"}
    db.admin.execute(FINISHED_MOVE.text, blocks)
    [(moved,)] = db.sql("SELECT segment FROM rota.finished")
    assert moved != segment
    assert db.sql("SELECT segment FROM rota.finished_memory") == [(moved,)]


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD])
def test_replacements_leave_no_timers(db: Database, move: Move) -> None:
    """A unique job, replaced repeatedly while it waits for ever, leaves one timer.

    It leaves none when it ends.
    """
    order = Order(spec_of(unique=Unique(on_conflict="replace")), ["{}"], Keys(unique=["k"]))
    session = db.session()
    for _ in range(3):
        db.own.run(db.store.enqueue(order))
        [job] = db.claim(session)
        holder = Holder(session, job.lease, job.id)
        pauses = (Pause(Kind.WAIT, "go", FOR_EVER, "go"),)
        end(db, holder, Move.SNOOZE, delay=FOR_EVER, pauses=pauses, unique_key="k")
        assert rows(db, "timer") == 1
    db.own.run(db.store.enqueue(order))
    [job] = db.claim(session)
    end(db, Holder(session, job.lease, job.id), move, unique_key="k", remembers=True)
    assert rows(db, "timer") == 0


def test_a_void_timer_takes_no_signals(db: Database) -> None:
    """A job that has ended takes none, though what a replacement made void is still in the timer."""
    for delay in (60.0, None):
        spec = spec_of(unique=Unique(on_conflict="replace"), delay=delay)
        db.own.run(db.store.enqueue(Order(spec, ["{}"], Keys(unique=["k"]))))
    session = db.session()
    [job] = db.claim(session)
    end(db, Holder(session, job.lease, job.id), Move.COMPLETE, unique_key="k")
    assert rows(db, "timer") == 1
    assert db.own.run(db.store.memory.signal(job.id, "go", "1", None)) is State.COMPLETED
    with pytest.raises(psycopg.Error, match="was completed"):
        db.sql("SELECT rota.signal(%s, 'go')", job.id)
    assert rows(db, "memory") == 0


@pytest.mark.parametrize("before", ["awake", "asleep"])
def test_a_signal_in_a_long_transaction(db: Database, before: str) -> None:
    """It counts when it commits, even if the job looked, slept, and was compared meanwhile.

    And it locks nothing.
    """
    holder = held(db)
    if before == "asleep":
        sleep_for_a_signal(db, holder)
    with db.admin.transaction():
        db.admin.execute("SELECT rota.signal(%s, 'go', '1'::json)", [holder.job])
        if before == "awake":
            found = db.own.run(db.store.memory.answer(holder, "go", "go", over=False))
            assert found is not None
            assert not found.ended
            sleep_for_a_signal(db, holder)
        assert db.own.run(db.store.stage(10)).staged == 0
        # Others are compared, and the mark goes on.
        other = held(db)
        sleep_for_a_signal(db, other)
        db.own.run(db.store.memory.signal(other.job, "go", "1", None))
        assert db.own.run(db.store.stage(10)).staged == 1
    assert db.own.run(db.store.due()) == 0
    assert db.own.run(db.store.stage(10)).staged == 1


def test_a_timer_that_is_locked_is_compared_again(db: Database) -> None:
    """A job that somebody is about to act on is left alone, and not forgotten."""
    holder = held(db)
    sleep_for_a_signal(db, holder)
    db.own.run(db.store.memory.signal(holder.job, "go", "1", None))
    with db.admin.transaction():
        db.admin.execute("SELECT FROM rota.timer FOR UPDATE")
        assert db.own.run(db.store.stage(10)).staged == 0
        assert db.own.run(db.store.due()) == 0
    assert db.own.run(db.store.stage(10)).staged == 1


def test_nothing_new_writes_no_mark(db: Database) -> None:
    """Stagings of other jobs write nothing about signals, and sleeping jobs are compared once."""
    holder = held(db)
    sleep_for_a_signal(db, holder)
    db.own.run(db.store.stage(10))
    enqueue(db.store, db.own, 1, delay=60.0)
    marks = db.admin.execute("SELECT max(seq) FROM rota.signal_mark").fetchall()
    db.own.run(db.store.stage(10))
    assert db.admin.execute("SELECT max(seq) FROM rota.signal_mark").fetchall() == marks


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("rota.signal(%(job)s, '')", "a name of 1 to 200"),
        ("rota.signal(%(job)s, 'a#2')", "a name of 1 to 200"),
        ("rota.signal(%(job)s, 'go', 'no json'::text)", "JSON is needed"),
        ("rota.signal(%(job)s, 'go', id => '')", "1 to 200 characters"),
        ("rota.signal(%(job)s, 'go', to_json(repeat('x', 1000001)))", "the limit is 1000000"),
        ("rota.signal(987654321, 'go')", "there is no job 987654321"),
        ("rota.signal(%(done)s, 'go')", "was completed: it takes no signals"),
    ],
)
def test_what_sql_refuses(
    db: Database,
    call: str,
    message: str,
) -> None:
    """A signal from SQL is refused for what Python refuses, and nothing is written."""
    done = held(db)
    end(db, done, Move.COMPLETE)
    holder = held(db)
    with pytest.raises(psycopg.Error, match=message):
        db.admin.execute(f"SELECT {call}", {"job": holder.job, "done": done.job})
    assert rows(db, "memory") == 0
