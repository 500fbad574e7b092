"""The statements of `past`: finished jobs, what counts them, and what happened in each minute."""

from typing import LiteralString

FINISHED: LiteralString = """
    WITH made AS (
        SELECT i, now() - make_interval(hours => %(hours)s) AS at, 'shop-' || i %% %(queues)s AS queue,
               CASE WHEN i %% %(discarded)s = 0 THEN 'discarded' WHEN i %% %(cancelled)s = 1 THEN 'cancelled'
                    ELSE 'completed' END AS state
        FROM generate_series(1, %(count)s) AS i
    ), ended AS (
        INSERT INTO rota.finished (id, enqueued_at, finished_at, keep_until, segment, priority, entry, attempt,
                                   max_attempts, state, queue, task, args, result, errors, unique_key)
        SELECT nextval('rota.job_id'), at - interval '1 min', at,
               CASE state WHEN 'discarded' THEN 'infinity' ELSE at + interval '1 day' END,
               CASE state WHEN 'discarded' THEN -1 ELSE %(part)s END, 0, 0, 1, 5, state, queue,
               'shop.task_' || i %% %(tasks)s,
               ('{"order_id":' || i || ',"user":{"name":"user ' || i %% 1000 || '"}}')::json,
               CASE WHEN state = 'completed' THEN '{"sent":true}'::json END,
               CASE WHEN state = 'discarded' THEN %(error)s::jsonb END,
               CASE WHEN i %% 10 = 2 THEN 'order:' || i END
        FROM made
        RETURNING queue, state, keep_until
    ), counted AS (
        SELECT queue, state, keep_until, count(*) AS jobs FROM ended GROUP BY queue, state, keep_until
        UNION ALL
        SELECT queue, state.name, 'infinity', count(*) FROM ended, (VALUES ('appended'), ('claimed')) AS state (name)
        GROUP BY queue, state.name
    )
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, counted.state, counted.keep_until, counted.jobs
    FROM counted JOIN rota.lane ON lane.queue = counted.queue AND NOT lane.of_key
"""

HISTORY: LiteralString = """
    INSERT INTO rota.history (queue, minute, span, appended, claimed, completed, discarded, available, oldest,
                              total_appended, total_claimed, total_completed, total_discarded, segment)
    SELECT queue, date_trunc('minute', now()) - make_interval(mins => minute + 1), 1, 60 + minute %% 7, 60,
           59, minute %% 2, 100, 1.5, 0, 0, 0, 0, (5 - minute / 2016) %% 5
    FROM generate_series(1, %(minutes)s) AS minute, json_array_elements_text(%(queues)s::json) AS queue
    ON CONFLICT DO NOTHING
"""

SQLITE_HISTORY: LiteralString = """
    INSERT INTO rota_history (queue, minute, span, appended, claimed, completed, discarded, available, oldest,
                              total_appended, total_claimed, total_completed, total_discarded)
    WITH RECURSIVE number (minute) AS (SELECT 1 UNION ALL SELECT minute + 1 FROM number WHERE minute < :minutes)
    SELECT queue.value, CAST((julianday('now') - 2440587.5) * 1440 AS INTEGER) - 1 - minute, 1, 60 + minute % 7, 60,
           59, minute % 2, 100, 1.5, 0, 0, 0, 0
    FROM number, json_each(:queues) AS queue
    WHERE true
    ON CONFLICT DO NOTHING
"""

AFTERWARDS: LiteralString = (
    "VACUUM (ANALYZE) rota.finished_0, rota.finished_1, rota.finished_2, rota.finished_3, rota.finished_4, "
    "rota.finished_5, rota.finished_discarded, rota.history, rota.timer, rota.unique_key, rota.lane, rota.cron_mark"
)
"""Not the log: autovacuum leaves it alone."""

SQLITE_FINISHED: tuple[LiteralString, ...] = (
    """
    INSERT INTO rota_job (task, queue, priority, state, attempt, max_attempts, enqueued_at, finished_at, keep_until,
                          args, result, errors, unique_key)
    WITH RECURSIVE moment (at) AS (SELECT (julianday('now') - 2440587.5) * 86400.0 - :hours * 3600.0),
    number (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < :count),
    made (i, at, queue, state, keep_until) AS (
        SELECT i, at, 'shop-' || (i % :queues),
               CASE WHEN i % :discarded = 0 THEN 'discarded' WHEN i % :cancelled = 1 THEN 'cancelled' ELSE 'completed' END,
               CASE WHEN i % :discarded > 0 THEN CAST(at / 3600 AS INTEGER) * 3600.0 + 86400.0 END
        FROM number, moment
    )
    SELECT 'shop.task_' || (i % :tasks), queue, 0, state, 1, 5, at - 60, at, keep_until,
           '{"order_id":' || i || ',"user":{"name":"user ' || (i % 1000) || '"}}',
           CASE WHEN state = 'completed' THEN '{"sent":true}' END, CASE WHEN state = 'discarded' THEN :error END,
           CASE WHEN i % 10 = 2 THEN 'order:' || i END
    FROM made
    """,
    """
    INSERT INTO rota_count (queue, state, expires, jobs)
    WITH RECURSIVE moment (at) AS (SELECT (julianday('now') - 2440587.5) * 86400.0 - :hours * 3600.0),
    number (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < :count),
    made (i, at, queue, state, keep_until) AS (
        SELECT i, at, 'shop-' || (i % :queues),
               CASE WHEN i % :discarded = 0 THEN 'discarded' WHEN i % :cancelled = 1 THEN 'cancelled' ELSE 'completed' END,
               CASE WHEN i % :discarded > 0 THEN CAST(at / 3600 AS INTEGER) * 3600.0 + 86400.0 END
        FROM number, moment
    ), counted (queue, state, expires, jobs) AS MATERIALIZED (
        SELECT queue, state, coalesce(keep_until, 9e999), count(*) FROM made GROUP BY 1, 2, 3
    )
    SELECT * FROM counted WHERE true
    UNION ALL SELECT queue, total.column1, 9e999, sum(jobs)
    FROM counted, (VALUES ('appended'), ('claimed')) AS total WHERE true GROUP BY queue, total.column1
    ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs
    """,
)
