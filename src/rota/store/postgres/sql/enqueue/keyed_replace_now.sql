-- Replace jobs that have these keys and have not started: a new entry of each goes to the log, and
-- the old one is void from now on. Gives the keys and the ids of the replaced jobs; running jobs
-- are neither changed nor locked. Waking as in enqueue.sql.
-- Locks: the rows of the keys, in their order, until the transaction ends. Claims and stagings do
-- not wait for these, they leave such a job for later; another producer of the same key waits.
-- Says in the tally what the void entries were. Entries of this very transaction, which no other
-- has seen, are deleted instead: two of one job would have the same position in log order.
-- A job of a flow's node leaves the node, and counts there as cancelled: its new entry has the
-- headers of the new enqueue.
-- The old entry says which node that is. Where the key was changed between this snapshot and its
-- lock, that entry may be one that this snapshot does not see: such a job is left alone, and it is
-- said that there is one.
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
    SET entry = held.entry + 1, xid = pg_current_xact_id(), lane = before.new_lane, while_waiting = %(while_waiting)s::bool, state = 'available'
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
    ) AS change
    GROUP BY lane, state
), job AS (
    INSERT INTO rota.log (id, lane, entry, segment, max_attempts, timeout, task, headers, args, unique_key, iteration,
                          last_run)
    SELECT job, lane, entry, (SELECT last_value %% 4 FROM rota.log_turn), %(max_attempts)s::int2,
           %(timeout)s::float4, %(task)s, %(headers)s::text::json, args, key, iteration, last_run
    FROM moved
    RETURNING id, unique_key
)
SELECT coalesce(stored.keys, '{}'), coalesce(stored.ids, '{}'), EXISTS (SELECT FROM before WHERE NOT same),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
FROM (SELECT array_agg(unique_key) AS keys, array_agg(id) AS ids FROM job) AS stored
