-- keyed_replace_now.sql for jobs whose time has not come (`delay` in seconds, or `at`): the new
-- entries go to the timer. With `cap` their time is at most so many seconds after the first enqueue
-- of their key.
WITH wanted AS MATERIALIZED (
    SELECT * FROM ROWS FROM (
        json_array_elements_text(%(keys)s::json), unnest(%(lanes)s::text::int4[]),
        json_array_elements(%(args)s::json)
    ) AS wanted (key, lane, args)
), before AS MATERIALIZED (
    SELECT held.key, held.job, held.lane, held.state, held.xid = pg_current_xact_id() AS own,
           held.entry = seen.entry AS same, wanted.lane AS new_lane, wanted.args
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT held.entry FROM rota.unique_key AS held
        WHERE held.key = wanted.key AND held.task = %(task)s OFFSET 0
    ) AS seen
    CROSS JOIN LATERAL (
        SELECT held.* FROM rota.unique_key AS held
        WHERE held.key = wanted.key AND held.task = %(task)s
          AND held.state IN ('scheduled', 'available', 'retryable')
        FOR UPDATE
    ) AS held
), moved AS (
    UPDATE rota.unique_key AS held
    SET entry = held.entry + 1, xid = pg_current_xact_id(), lane = before.new_lane, while_waiting = %(while_waiting)s::bool, state = 'scheduled'
    FROM before WHERE held.key = before.key AND held.task = %(task)s AND before.same
    RETURNING held.key, held.job, held.entry, held.lane, held.iteration, held.last_run, held.first_at,
              before.lane AS old_lane, before.state AS old_state, before.args
), left_node AS (
    INSERT INTO rota.flow_arrival (node, cancelled)
    SELECT old.node, count(*)
    FROM (
        SELECT (coalesce(
            (SELECT entry.headers FROM rota.log AS entry
             WHERE entry.id = moved.job AND entry.entry = moved.entry - 1 LIMIT 1),
            (SELECT entry.headers FROM rota.timer AS entry
             WHERE entry.id = moved.job AND entry.entry = moved.entry - 1)) ->> 'rota.node')::int8 AS node
        FROM moved WHERE EXISTS (SELECT FROM rota.flow_node) OFFSET 0
    ) AS old
    WHERE (SELECT true FROM rota.flow_node AS node WHERE node.id = old.node)
    GROUP BY old.node
), own AS (
    DELETE FROM rota.log AS job USING (
        SELECT place.segment, place.ctid AS place FROM before
        CROSS JOIN LATERAL (
            SELECT entry.segment, entry.ctid FROM rota.log AS entry
            WHERE entry.id = before.job AND entry.xid = pg_current_xact_id() OFFSET 0
        ) AS place
        WHERE before.own
    ) AS mine
    WHERE job.segment = mine.segment AND job.ctid = mine.place
    RETURNING job.id, job.lane
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, sum(jobs)
    FROM (
        SELECT old_lane AS lane, 'removed' AS state, 1 AS jobs FROM moved
        WHERE old_state = 'available' AND (job IN (SELECT id FROM own)) IS NOT TRUE
        UNION ALL
        SELECT own.lane, 'removed', -1 FROM own JOIN before ON before.job = own.id
        WHERE before.state <> 'available'
        UNION ALL
        SELECT old_lane, old_state, -1 FROM moved WHERE old_state <> 'available'
        UNION ALL
        SELECT lane, 'scheduled', 1 FROM moved
    ) AS change
    GROUP BY lane, state
), job AS (
    INSERT INTO rota.timer (id, run_at, lane, entry, max_attempts, timeout, task, headers, args, unique_key, iteration,
                            last_run)
    SELECT job,
           least(coalesce(%(at)s::timestamptz,
                          clock_timestamp() + make_interval(secs => %(delay)s::float8)),
                 first_at + make_interval(secs => %(cap)s::float8)),
           lane, entry, %(max_attempts)s::int2, %(timeout)s::float4, %(task)s,
           %(headers)s::text::json, args, key, iteration,
           last_run
    FROM moved
    RETURNING id, unique_key
)
SELECT coalesce(stored.keys, '{}'), coalesce(stored.ids, '{}'), EXISTS (SELECT FROM before WHERE NOT same),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
FROM (SELECT array_agg(unique_key) AS keys, array_agg(id) AS ids FROM job) AS stored
