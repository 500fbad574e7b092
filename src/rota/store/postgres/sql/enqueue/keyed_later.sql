-- keyed_now.sql for jobs whose time has not come (`delay` in seconds, or `at`). Says in the tally
-- how many.
WITH wanted AS MATERIALIZED (
    SELECT * FROM ROWS FROM (
        unnest(%(jobs)s::text::int8[]), json_array_elements_text(%(keys)s::json),
        unnest(%(lanes)s::text::int4[]), json_array_elements(%(args)s::json)
    ) AS wanted (id, key, lane, args)
), fresh AS (
    INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)
    SELECT id, %(until)s::timestamptz, lane, 0, %(while_waiting)s::bool, 'scheduled', %(task)s, key
    FROM wanted WHERE key IS NOT NULL
    ON CONFLICT (key, task) DO NOTHING
    RETURNING job
), job AS (
    INSERT INTO rota.timer (id, lane, run_at, max_attempts, timeout, task, headers, args, unique_key)
    SELECT wanted.id, wanted.lane,
           coalesce(%(at)s::timestamptz,
                    clock_timestamp() + make_interval(secs => %(delay)s::float8)),
           %(max_attempts)s::int2, %(timeout)s::float4, %(task)s, %(headers)s::text::json, wanted.args,
           wanted.key
    FROM wanted
    WHERE wanted.key IS NULL OR (wanted.id IN (SELECT job FROM fresh)) IS TRUE
    ORDER BY wanted.id
    RETURNING id, lane
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'scheduled', count(*)
    FROM job GROUP BY lane
)
SELECT coalesce(stored.ids, '{}'),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
FROM (SELECT array_agg(id) AS ids FROM job) AS stored
