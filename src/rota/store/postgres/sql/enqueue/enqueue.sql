-- Append one job to the log, in whatever transaction the caller has. Gives what is set for its
-- queue, and whether the lane was there before this transaction: a producer that goes on with
-- enqueue_here.sql needs both.
-- Locks: nothing that another producer waits for; the row and its index entries are new.
-- Gives no row where the lane does not exist yet (or the caller's snapshot is older than the lane):
-- `lane` then names it, after it was made apart. The wake is sent only if a worker of the queue
-- `wake` holds the lock that says "asleep"; taking and freeing it costs microseconds. Null: no
-- wake.
-- CAST, since some drivers write parameters into the text: -32768::int2 would be minus 32768, which
-- is no int2.
-- It begins with the transaction's id, by which workers of older versions know which of them
-- claims; the plus says that a job is available, so that no timer needs to be looked at.
WITH lane AS (
    -- With what is set for the queue: it holds where neither the caller nor the task says anything.
    SELECT place.id, preset.max_attempts, preset.timeout,
           (SELECT made_by FROM rota.lane WHERE lane.id = place.id)
               IS DISTINCT FROM pg_current_xact_id_if_assigned() AS lasting
    FROM (SELECT coalesce(%(lane)s::int4, (
        SELECT id FROM rota.lane
        WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key))
    ) AS place (id)
    LEFT JOIN rota.queue_setting AS preset ON preset.queue = %(queue)s
), job AS (
    INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, headers, args)
    SELECT nextval('rota.job_id'), lane.id, (SELECT last_value %% 4 FROM rota.log_turn),
           coalesce(%(max_attempts)s::int2, lane.max_attempts, %(fallback_attempts)s::int2),
           coalesce(%(timeout)s::float4, lane.timeout, %(fallback_timeout)s::float4),
           %(task)s, %(headers)s::text::json, %(args)s::text::json
    FROM lane WHERE lane.id IS NOT NULL
    RETURNING id, lane, segment
)
SELECT job.id, job.lane, job.segment, CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', concat('+', pg_current_xact_id(), ' ', %(wake)s)) IS NULL END,
       lane.lasting, lane.max_attempts, lane.timeout
FROM job CROSS JOIN lane
