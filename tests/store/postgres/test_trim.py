"""Removing what is old, beside a snapshot that keeps a day's dead rows: only what is new is looked at.

Costs are buffers. Beside a held snapshot nothing can mark the dead entries of an index, so a walk
over them reads each.
"""

from collections.abc import Callable

import pytest

from rota.measure.bench.examiner import blocks
from rota.store.operation import Begin, Query
from rota.store.postgres import stage, tidy
from rota.store.postgres.cron import DIALECT
from rota.store.postgres.sessions import SESSION_FORGET
from tests.store.postgres.database import Database, Raw, begin, buffers, explained

DAY = 20_000
"""Rows that a day leaves behind, here."""


def signs_of_life(db: Database) -> None:
    """A day of one worker, up to now."""
    db.sql("INSERT INTO rota.heartbeat SELECT %s, now() - ago * interval '4 s'"
           " FROM generate_series(0, %s) AS ago", db.session(15.0), DAY)  # fmt: skip


def keys(db: Database, ended: str = "ended") -> None:
    """Keys whose periods were over during the last day."""
    db.sql("INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)"
           " SELECT n, now() - n * interval '4 s', 1, 0, false, %s, 't', n::text"
           " FROM generate_series(1, %s) AS n", ended, DAY)  # fmt: skip


def discarded(db: Database) -> None:
    """Discarded jobs whose retention was over during the last days."""
    db.sql("INSERT INTO rota.finished (id, enqueued_at, keep_until, segment, priority, entry, attempt,"
           " max_attempts, state, queue, task, args)"
           " SELECT n, now(), now() - n * interval '30 s', -1, 0, 0, 1, 1, 'discarded', 'q', 't', '{}'"
           " FROM generate_series(1, %s) AS n", DAY)  # fmt: skip


def old(db: Database) -> Query:
    """The end of a session; what the dead one had is gone."""
    return SESSION_FORGET(sessions=[db.one("SELECT max(session) FROM rota.heartbeat")])


ROUNDS: dict[str, tuple[Callable[[Database], None], Callable[[Database], Query], str]] = {
    "signs of life": (signs_of_life, lambda _: tidy.HEARTBEAT_TRIM(), "rota.heartbeat"),
    "a session's end": (signs_of_life, old, "rota.heartbeat"),
    "keys": (keys, lambda _: tidy.KEY_TRIM(), "rota.unique_key"),
    "discarded jobs": (
        discarded, lambda _: tidy.PRUNE_DISCARDED(size=500), "rota.finished_discarded"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ROUNDS)
def test_what_was_removed_is_not_looked_at_again(db: Database, held: Raw, what: str) -> None:
    """A round reads what has come since the last one, however much that and others removed."""
    del held
    fill, query, table = ROUNDS[what]
    fill(db)
    for _ in range(3):
        db.own.run(db.store.tidy())
    assert db.one(f"SELECT count(*) FROM {table}") < 100
    raw = db.bare(autocommit=True)
    for _ in range(2):
        begin(raw, Begin.HASTY)
        cost = blocks(explained(raw, query(db)))
        raw.execute("ROLLBACK")
    assert cost < 60


def test_signs_of_life_of_each_session_go(db: Database) -> None:
    """Up to the same moment, which the longest timeout says; those after it stay."""
    db.session(timeout=600.0)
    signs_of_life(db)
    short = db.session(timeout=15.0)
    # Half a minute beside the limit of forty, however long a slow machine takes.
    db.sql("INSERT INTO rota.heartbeat SELECT %s, now() - (ago - 0.5) * interval '1 minute'"
           " FROM generate_series(1, 100) AS ago", short)  # fmt: skip
    for _ in range(2):
        db.own.run(db.store.tidy())
        assert db.one("SELECT count(*) FROM rota.heartbeat WHERE session = %s", short) == 41
        oldest = db.one("SELECT extract(epoch FROM now() - min(at)) FROM rota.heartbeat")
        assert 2390 <= oldest <= 2410


def test_a_clock_that_was_set_back(db: Database) -> None:
    """What is removed next is what is old by the new time."""
    for sequence in ("heartbeat_trimmed", "key_trimmed", "discarded_pruned"):
        db.sql(f"SELECT setval('rota.{sequence}', extract(epoch FROM now())::int8 + 86400)")
    db.own.run(db.store.tidy())
    session = db.session(timeout=15.0)
    db.sql("INSERT INTO rota.heartbeat VALUES (%s, now() - interval '70 s')", session)
    for fill in (keys, discarded):
        fill(db)
    assert db.one("SELECT last_value FROM rota.heartbeat_trimmed") < db.one(
        "SELECT extract(epoch FROM now())::int8")  # fmt: skip
    db.own.run(db.store.tidy())
    newest = "SELECT count(*) FROM {} WHERE {} > now() - interval '50 s'"
    assert db.one(newest.format("rota.unique_key", "until")) == 0
    assert db.one(newest.format("rota.finished_discarded", "keep_until")) == 0


def test_a_key_of_a_job_that_runs_stays(db: Database) -> None:
    """Past its period, too: the job frees it when it ends."""
    keys(db, "running")
    db.own.run(db.store.tidy())
    assert db.one("SELECT count(*) FROM rota.unique_key") == DAY


def test_more_discarded_jobs_than_a_round_removes(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next round goes on where this one stopped, and not after it."""
    monkeypatch.setattr(tidy, "PRUNE_BATCHES", 1)
    discarded(db)
    left = [DAY]
    for _ in range(3):
        db.own.run(db.store.tidy())
        left.append(db.one("SELECT count(*) FROM rota.finished_discarded"))
    assert left == [DAY, DAY - 500, DAY - 1000, DAY - 1500]


def test_marks_of_stagings(db: Database, held: Raw) -> None:
    """Each forgets an old one, so that there are ten, and none is looked for."""
    del held
    for _ in range(15):
        db.enqueue(1, delay=0.001)
        db.own.run(db.store.stage(100))
    marks = "SELECT count(*), max(seq) - min(seq) FROM rota.timer_mark"
    assert db.sql(marks) == [(10, 9)]
    db.sql("INSERT INTO rota.timer_mark SELECT seq + n, run_at, id, snapshot FROM rota.timer_mark,"
           " generate_series(20, %s, 20) AS n WHERE seq = 7", DAY * 20)  # fmt: skip
    db.sql("DELETE FROM rota.timer_mark WHERE seq < (SELECT max(seq) - 9 FROM rota.timer_mark)")
    db.enqueue(1, delay=0.001)
    assert buffers(db, stage.STAGE(size=100)) < 100


def test_marks_of_cron_entries(db: Database, held: Raw) -> None:
    """Each is one insert and one deletion, whatever was there before."""
    del held
    db.sql("INSERT INTO rota.cron_entry (jitter, priority, max_attempts, name, expression, timezone, missed,"
           " task, queue, args) VALUES (0, 0, 1, 'n', '@daily', 'UTC', 'skip', 't', 'q', '{}')")  # fmt: skip
    [(entry,)] = db.sql("SELECT id FROM rota.cron_entry")
    db.sql(
        "INSERT INTO rota.cron_mark SELECT %s, n, now() FROM generate_series(1, %s) AS n",
        entry,
        DAY,
    )
    db.sql("DELETE FROM rota.cron_mark WHERE seq < %s", DAY - 9)
    mark = DIALECT.mark(entry=entry, seq=DAY + 1, since="2026-01-01", due=None, last=None)
    assert buffers(db, mark) < 20
