-- Append jobs to the log, each to its own lane, under ids that were taken before; those with a
-- unique key only if the key is free. Gives the ids of the appended jobs. Waking as in enqueue.sql.
-- Locks: a new row per key. Waits for an open transaction with the same new key; all producers go
-- in the order of the keys, so that they cannot deadlock.
-- All but ids and lanes are JSON lists: the driver would spend longer on arrays than the server on
-- the rows.
-- IS TRUE keeps the planner from making a join of IN, which would not be hashed on Rota's
-- connections.
WITH wanted AS MATERIALIZED (
    SELECT * FROM ROWS FROM (
        unnest(%(jobs)s::text::int8[]), json_array_elements_text(%(keys)s::json),
        unnest(%(lanes)s::text::int4[]), json_array_elements(%(args)s::json)
    ) AS wanted (id, key, lane, args)
), fresh AS (
    INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)
    SELECT id, %(until)s::timestamptz, lane, 0, %(while_waiting)s::bool, 'available', %(task)s, key
    FROM wanted WHERE key IS NOT NULL
    ON CONFLICT (key, task) DO NOTHING
    RETURNING job
), job AS (
    INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, headers, args, unique_key)
    SELECT wanted.id, wanted.lane, (SELECT last_value %% 4 FROM rota.log_turn),
           %(max_attempts)s::int2, %(timeout)s::float4, %(task)s, %(headers)s::text::json, wanted.args,
           wanted.key
    FROM wanted
    WHERE wanted.key IS NULL OR (wanted.id IN (SELECT job FROM fresh)) IS TRUE
    ORDER BY wanted.id
    RETURNING id
)
SELECT coalesce(stored.ids, '{}'),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat('+', pg_current_xact_id(), ' ', %(wake)s)) IS NULL END
FROM (SELECT array_agg(id) AS ids FROM job) AS stored
