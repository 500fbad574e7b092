-- Store jobs whose time has not come (`delay` in seconds, or `at`); ids in the order of the args.
-- Locks: nothing that another producer waits for. Workers are woken to learn the new due time.
-- Says in the tally how many.
WITH lane AS (
    -- With what is set for the queue: it holds where neither the caller nor the task says anything.
    SELECT place.id, preset.max_attempts, preset.timeout
    FROM (SELECT coalesce(%(lane)s::int4, (
        SELECT id FROM rota.lane
        WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key))
    ) AS place (id)
    LEFT JOIN rota.queue_setting AS preset ON preset.queue = %(queue)s
), job AS (
    INSERT INTO rota.timer (id, lane, run_at, max_attempts, timeout, task, headers, args)
    SELECT nextval('rota.job_id'), lane.id,
           coalesce(%(at)s::timestamptz,
                    clock_timestamp() + make_interval(secs => %(delay)s::float8)),
           coalesce(%(max_attempts)s::int2, lane.max_attempts, %(fallback_attempts)s::int2),
           coalesce(%(timeout)s::float4, lane.timeout, %(fallback_timeout)s::float4),
           %(task)s, %(headers)s::text::json, entry.args::json
    FROM lane, unnest(%(args)s::text[]) AS entry (args)
    WHERE lane.id IS NOT NULL
    RETURNING id
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, 'scheduled',
           cardinality(%(args)s::text[])
    FROM lane WHERE lane.id IS NOT NULL
), wake AS (
    SELECT CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END AS sent
)
SELECT job.id, wake.sent FROM job, wake ORDER BY job.id
