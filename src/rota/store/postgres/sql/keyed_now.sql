-- Append jobs to the log, each to its own lane, under ids that were taken before.
-- Locks and waking as in enqueue.sql.
WITH job AS (
    INSERT INTO rota.log (id, lane, segment, max_attempts, timeout, task, args)
    SELECT wanted.id, wanted.lane, (SELECT last_value %% 4 FROM rota.log_turn),
           %(max_attempts)s::int2, %(timeout)s::float4, %(task)s, wanted.args::json
    FROM unnest(%(jobs)s::int8[], %(lanes)s::int4[], %(args)s::text[]) AS wanted (id, lane, args)
    RETURNING id
), wake AS (
    SELECT CASE WHEN %(wake)s::text IS NULL THEN false
                WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
                THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
                ELSE pg_notify('rota', %(wake)s) IS NULL END AS sent
)
SELECT job.id, wake.sent FROM job, wake
