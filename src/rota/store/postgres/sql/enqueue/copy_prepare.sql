-- What a COPY into the log needs to know: the lane, the segment, an id for every job, and what is
-- set for the queue. The ids are in rising order; of a run without gaps only the first is given.
-- Wakes a sleeping worker like enqueue.sql; the notification goes out with the commit.
SELECT lane.id, (SELECT last_value %% 4 FROM rota.log_turn) AS segment,
       CASE WHEN job.ids[%(count)s::int4] - job.ids[1] = %(count)s::int4 - 1
            THEN job.ids[1:1] ELSE job.ids END AS ids,
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END,
       preset.max_attempts, preset.timeout
FROM (SELECT coalesce(%(lane)s::int4, (
        SELECT id FROM rota.lane
        WHERE queue = %(queue)s AND priority = CAST(%(priority)s AS int2) AND NOT of_key))
) AS lane (id)
CROSS JOIN LATERAL (
    -- Asks for the lane, so that no ids are taken where there is none. OFFSET 0: once.
    SELECT ARRAY(SELECT nextval('rota.job_id')
                 FROM (SELECT generate_series(1, %(count)s::int4)) AS wanted) AS ids
    WHERE lane.id IS NOT NULL OFFSET 0
) AS job
LEFT JOIN rota.queue_setting AS preset ON preset.queue = %(queue)s
WHERE lane.id IS NOT NULL
