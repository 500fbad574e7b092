-- Replace jobs that have these keys and have not started: a new entry of each goes to the log, and the one it
-- had is void from now on. Gives the keys and the ids of those that were replaced; running jobs are
-- neither changed nor locked. Waking as in enqueue.sql.
-- Locks: the rows of the keys, in their order, until the transaction ends. Claims and stagings do not
-- wait for these, they leave such a job for later; another producer of the same key waits.
-- Says in the tally what the void entries were. Entries of this very transaction are deleted
-- instead, nobody has seen them: two of one job would have the same place in log order.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(keys)s::text[], %(lanes)s::int4[], %(args)s::text[])
        AS wanted (key, lane, args)
), before AS MATERIALIZED (
    SELECT held.key, held.job, held.lane, held.state, wanted.lane AS new_lane, wanted.args
    FROM wanted JOIN rota.unique_key AS held ON held.key = wanted.key AND held.task = %(task)s
    WHERE held.state IN ('scheduled', 'available', 'retryable')
    ORDER BY held.key FOR UPDATE OF held
), moved AS (
    UPDATE rota.unique_key AS held
    SET entry = held.entry + 1, lane = before.new_lane, while_waiting = %(while_waiting)s::bool, state = 'available'
    FROM before WHERE held.key = before.key AND held.task = %(task)s
    RETURNING held.key, held.job, held.entry, held.lane, held.iteration, held.last_run, held.first_at,
              before.lane AS old_lane, before.state AS old_state, before.args
), own AS (
    DELETE FROM rota.log
    WHERE id = ANY (ARRAY(SELECT job FROM before)) AND xid = pg_current_xact_id()
    RETURNING id, lane
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
    INSERT INTO rota.log (id, lane, entry, segment, max_attempts, timeout, task, args, unique_key, iteration,
                          last_run)
    SELECT job, lane, entry, (SELECT last_value %% 4 FROM rota.log_turn), %(max_attempts)s::int2,
           %(timeout)s::float4, %(task)s, args::json, key, iteration, last_run
    FROM moved
    RETURNING id, unique_key
), wake AS (
    SELECT CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', %(wake)s) IS NULL END AS sent
)
SELECT job.unique_key, job.id, wake.sent FROM job, wake
