-- Store jobs whose time has not come (`delay` in seconds, or `at`), each for its own lane, under ids
-- that were taken before. Locks and waking as in enqueue_later.sql. Says in the tally how many.
WITH job AS (
    INSERT INTO rota.timer (id, lane, run_at, max_attempts, timeout, task, args)
    SELECT wanted.id, wanted.lane,
           coalesce(%(at)s::timestamptz,
                    clock_timestamp() + make_interval(secs => %(delay)s::float8)),
           %(max_attempts)s::int2, %(timeout)s::float4, %(task)s, wanted.args::json
    FROM unnest(%(jobs)s::int8[], %(lanes)s::int4[], %(args)s::text[]) AS wanted (id, lane, args)
    RETURNING id, lane
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'scheduled', count(*)
    FROM job GROUP BY lane
), wake AS (
    SELECT CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', %(wake)s) IS NULL END AS sent
)
SELECT job.id, wake.sent FROM job, wake
