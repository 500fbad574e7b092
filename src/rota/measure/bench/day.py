"""What does a day under one old snapshot do to each statement of a worker?

A session takes a snapshot and holds it, and SQL writes down what a day of ten workers leaves
behind: signs of life, marks, leases, cursors, counts, staged and removed jobs. Upkeep does its
rounds. Then each statement is compared with the same statement before that day.
"""

import time
from collections.abc import Mapping
from typing import LiteralString

from rota.cron.entry import CronEntry
from rota.errors import ConfigError
from rota.measure.bench.examiner import Cost, Examiner
from rota.measure.bench.figures import ratio
from rota.measure.bench.holder import held
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Figures, Result
from rota.model.job import ClaimedJob, JobSpec, Keys, Order, SessionInfo
from rota.model.limit import Limit
from rota.model.notes import Note
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.model.unique import Unique
from rota.terminal.progress import Progress

MOST = 1.5
"""How much more a statement may cost after the day."""

FEW_BLOCKS = 25
"""Blocks that do not count as more: a day adds a level or two to an index, for each session."""

SHORT = 0.25
"""Milliseconds that do not count as more."""

PASSES = 4
"""How often a worker's turn is examined per state; each first run fills caches and is left out."""

LONGEST = 30.0
"""Seconds after which the rings should have been emptied that the day has filled."""

WORKERS = 10
MOVES = (Move.COMPLETE, Move.RETRY, Move.SNOOZE, Move.DISCARD, Move.RELEASE)

DAY: tuple[LiteralString, ...] = (
    # A sign of life every three seconds.
    """
    INSERT INTO rota.heartbeat
    SELECT id, now() - ago * interval '3 s'
    FROM rota.session, generate_series(100, (28800 * :share)::int) AS ago
    """,
    # A delayed job a second, with its mark.
    """
    INSERT INTO rota.timer (id, run_at, lane, max_attempts, task, args)
    SELECT nextval('rota.job_id'), now() - ago * interval '1 s', (SELECT min(id) FROM rota.lane), 5, 't', '{}'
    FROM generate_series(1, (86400 * :share)::int) AS ago
    """,
    """
    INSERT INTO rota.timer_mark
    SELECT newest.seq + n, now() - interval '1 s', 0, pg_current_snapshot()
    FROM (SELECT * FROM rota.timer_mark ORDER BY seq DESC LIMIT 1) AS newest,
         generate_series(1, (86400 * :share)::int) AS n
    """,
    "DELETE FROM rota.timer WHERE run_at < now() AND task = 't'",
    "DELETE FROM rota.timer_mark WHERE seq < (SELECT max(seq) - 9 FROM rota.timer_mark)",
    """
    INSERT INTO rota.cron_mark
    SELECT entry, newest.seq + n, since, due
    FROM (SELECT DISTINCT ON (entry) * FROM rota.cron_mark ORDER BY entry, seq DESC) AS newest,
         generate_series(1, (1440 * :share)::int) AS n
    """,
    """
    DELETE FROM rota.cron_mark AS old
    USING (SELECT entry, max(seq) AS seq FROM rota.cron_mark GROUP BY entry) AS newest
    WHERE old.entry = newest.entry AND old.seq < newest.seq - 9
    """,
    # Leases, cursors and counts, more than the rings take before they turn.
    """
    INSERT INTO rota.lease (slot, session, lane, jobs)
    SELECT (SELECT last_value % 2 FROM rota.lease_turn), (SELECT min(id) FROM rota.session), 1, '{-7}'
    FROM generate_series(1, 10000)
    """,
    "DELETE FROM rota.lease WHERE jobs = '{-7}'",
    """
    INSERT INTO rota.cursor
    SELECT newest.seq + n, xid, id, taken, lane, (SELECT last_value % 2 FROM rota.cursor_turn), hole_xids, hole_ids
    FROM rota.cursor_newest AS newest, generate_series(1, 25000) AS n
    WHERE lane = (SELECT min(id) FROM rota.lane)
    """,
    """
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value % 2 FROM rota.tally_turn), (SELECT min(id) FROM rota.lane), 'retryable', n % 2 * 2 - 1
    FROM generate_series(1, 100000) AS n
    """,
    # Keys whose period was over, and discarded jobs whose retention was, during the day.
    """
    INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)
    SELECT n, now() - n * interval '5 s', 1, 0, false, 'ended', 't', n::text
    FROM generate_series(1, (17280 * :share)::int) AS n
    """,
    """
    INSERT INTO rota.finished (id, enqueued_at, keep_until, segment, priority, entry, attempt, max_attempts,
                               state, queue, task, args)
    SELECT n, now(), now() - n * interval '10 s', -1, 0, 0, 1, 1, 'discarded', 'default', 't', '{}'
    FROM generate_series(1, (8640 * :share)::int) AS n
    """,
    # What was remembered of these is from before the day.
    "SELECT setval('rota.' || name, 0) FROM unnest(ARRAY['heartbeat_trimmed', 'key_trimmed', 'discarded_pruned']) AS name",
)
"""What a day leaves behind, or a `share` of it; the rings turn in any case. Upkeep removes the rest."""

LEFT: LiteralString = """
    SELECT count(*) FROM (VALUES ('lease'), ('cursor'), ('tally')) AS ring (name)
    CROSS JOIN generate_series(0, 1) AS number
    WHERE pg_relation_size(format('rota.%s_%s', ring.name, number)::regclass) > :size
"""


def day(scratch: Scratch, *, share: float, progress: Progress) -> Result:
    """Compare the statements of a worker before and after a day under one snapshot.

    Args:
        scratch: Where to make the database.
        share: Which part of the day's rows to write.
        progress: Shows how far it is.

    Raises:
        ConfigError: There is no PostgreSQL.
    """
    if not scratch.postgres:
        message = "hold --day needs PostgreSQL (--private, or --url): SQLite keeps no dead rows"
        raise ConfigError(message)
    with scratch.fresh() as url:
        examiner = Examiner(url)
        try:
            _begin(examiner)
            with held(url):
                before = _passes(examiner, "before the day", progress)
                _pass_a_day(examiner, share, progress)
                after = _passes(examiner, "after the day", progress)
        finally:
            examiner.close()
    return _result(before, after)


def _begin(examiner: Examiner) -> None:
    """Workers, entries, and some jobs that wait."""
    store = examiner.store
    for number in range(WORKERS):
        examiner.run(store.open_session(_worker(number)))
    for number in range(WORKERS):
        examiner.run(store.cron.add(CronEntry(f"entry {number}", "* * * * *", "t")))
    examiner.run(store.enqueue(Order(JobSpec("t", delay=3600.0), ["{}"] * 100)))


def _worker(number: int) -> SessionInfo:
    return SessionInfo(host="bench", pid=number, queues=("default",), timeout=60.0)


def _passes(examiner: Examiner, what: str, progress: Progress) -> Mapping[str, Cost]:
    progress.begin(what, PASSES)
    for number in range(PASSES):
        _turn(examiner)
        if number == 0:
            examiner.forget()
        progress.at(number + 1)
    return examiner.costs()


def _turn(examiner: Examiner) -> None:
    """All that a worker does, from its first word to its last; another one dies beside it."""
    store, run = examiner.store, examiner.run
    for (session,) in examiner.sql("SELECT id FROM rota.session"):
        run(store.renew(session))
    mine = run(store.open_session(_worker(WORKERS)))
    limit, unique = Limit("{key}", running=2), Unique(by=("key",))
    keys = [f"key {number}" for number in range(5)]
    args = [f'{{"key":"{key}"}}' for key in keys]
    run(store.enqueue(Order(JobSpec("t"), args * 4)))
    run(store.enqueue(Order(JobSpec("t", delay=0.0), args)))
    run(store.enqueue(Order(JobSpec("t", limit=limit), args, Keys(limit=keys))))
    run(store.enqueue(Order(JobSpec("t", priority=5, unique=unique), args, Keys(unique=keys))))
    # Entries become due by themselves each minute, which is too long to wait for.
    examiner.sql("UPDATE rota.cron_mark SET due = now() WHERE due IS NOT NULL")
    run(store.look(["default"], cron=True))
    run(store.cron.make())
    run(store.stage(100))
    dead = run(store.open_session(SessionInfo("bench", 0, ("default",), timeout=0.0)))
    run(store.claim(dead, ["default"], 3))
    run(store.rescue())
    jobs: list[ClaimedJob] = []
    while taken := run(store.claim(mine, ["default"], 10, woken=not jobs)):
        jobs += taken
        run(
            store.note(
                [
                    Note(job.id, job.lease, 1, True, 1, 0.0, None, "info", "here")
                    for job in taken[:2]
                ]
            )
        )
        run(store.settle(mine, [_settlement(job, number) for number, job in enumerate(taken)]))
    # A mark is new enough for half a second.
    examiner.sql(
        "UPDATE rota.tally_mark SET at = at - interval '1 s' WHERE seq = (SELECT max(seq) FROM rota.tally_mark)"
    )
    run(store.squeeze())
    run(store.tidy())
    run(store.close_session(mine))


def _settlement(job: ClaimedJob, number: int) -> Settlement:
    error = '{"attempt":1,"at":"2026-01-01T00:00:00Z","exception":"E","message":"","traceback":""}'
    move = MOVES[number % len(MOVES)]
    return Settlement(
        job.id, job.lease, move, delay=3600.0, keep=None if move is Move.DISCARD else 60.0,
        error=error if move in {Move.RETRY, Move.DISCARD} else None, unique_key=job.unique_key,
    )  # fmt: skip


def _pass_a_day(examiner: Examiner, share: float, progress: Progress) -> None:
    progress.begin("the day", len(DAY))
    for number, statement in enumerate(DAY, 1):
        examiner.sql(statement.replace(":share", str(share)))
        progress.at(number)
    deadline = time.monotonic() + LONGEST
    left = LEFT.replace(":size", str(256 * 1024))
    while True:
        examiner.run(examiner.store.tidy())
        [(full,)] = examiner.sql(left)
        if not full or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    for (session,) in examiner.sql("SELECT id FROM rota.session"):
        examiner.run(examiner.store.renew(session))


def _result(before: Mapping[str, Cost], after: Mapping[str, Cost]) -> Result:
    both = before.keys() & after.keys()
    dearer = sorted(name for name in both if _is_more(before[name], after[name]))
    statements: dict[str, Figures] = {
        name: {
            "blocks_before": round(before[name].blocks),
            "blocks_after": round(after[name].blocks),
            "blocks_ratio": ratio(after[name].blocks, before[name].blocks),
            "ms_before": round(before[name].ms, 3),
            "ms_after": round(after[name].ms, 3),
            "ms_ratio": ratio(after[name].ms, before[name].ms),
            "within": name not in dearer,
        }
        for name in sorted(both, key=lambda name: (name not in dearer, name))
    }
    summary: Figures = {
        "examined": len(both),
        "dearer": len(dearer),
        "which": ", ".join(dearer) or "none",
    }
    return Result(figures={"statements": statements, "all": summary}, notes=NOTES)


def _is_more(before: Cost, after: Cost) -> bool:
    return after.blocks > MOST * before.blocks + FEW_BLOCKS or after.ms > MOST * before.ms + SHORT


NOTES = (
    (
        f"within: at most {MOST} times the blocks before the day and {FEW_BLOCKS} more, and at most {MOST} times the "
        f"time and {SHORT} ms more. Blocks are those of the buffer cache, the median of the runs; the time is the "
        "shortest. Statements that turn, lock or empty tables are not examined, since that cannot be undone."
    ),
)
