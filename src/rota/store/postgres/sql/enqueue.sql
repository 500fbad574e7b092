-- Append one job to the log, in whatever transaction the caller has.
-- Locks: nothing that another producer waits for; the row and its index entries are new.
-- Gives no row where the lane does not exist yet (or the caller's snapshot is older than it):
-- `lane` then names it, after it was made apart. The wake is sent only if a worker of the queue
-- `wake` holds the lock that says "asleep"; taking and freeing it costs microseconds. Null: no wake.
WITH lane AS (
    SELECT coalesce(%(lane)s::int4, (
        SELECT id FROM rota.lane
        WHERE queue = %(queue)s AND priority = %(priority)s::int2 AND NOT of_key)) AS id
), job AS (
    INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, args)
    SELECT nextval('rota.job_id'), lane.id, (SELECT last_value %% 4 FROM rota.log_turn),
           %(max_attempts)s::int2, %(timeout)s::float4, %(task)s, %(args)s::text::json
    FROM lane WHERE lane.id IS NOT NULL
    RETURNING id, lane, segment
)
SELECT id, lane, segment, CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', %(wake)s) IS NULL END
FROM job
