-- Append many jobs of one spec to the log; ids come back in the order of the args.
-- Locks and waking as in enqueue.sql.
WITH lane AS (
    -- With what is set for the queue: it holds where neither the caller nor the task says anything.
    SELECT place.id, preset.max_attempts, preset.timeout
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
           %(task)s, %(headers)s::text::json, entry.args::json
    FROM lane, unnest(%(args)s::text[]) AS entry (args)
    WHERE lane.id IS NOT NULL
    RETURNING id
), wake AS (
    SELECT CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', concat('+', pg_current_xact_id(), ' ', %(wake)s)) IS NULL END AS sent
)
SELECT job.id, wake.sent FROM job, wake ORDER BY job.id
