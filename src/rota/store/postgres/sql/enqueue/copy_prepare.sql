-- What a COPY into the log needs to know: the lane, the segment, an id for every job, and what is set
-- for the queue.
-- Wakes a sleeping worker like enqueue.sql; the notification goes out with the commit.
SELECT lane.id, (SELECT last_value %% 4 FROM rota.log_turn) AS segment,
       ARRAY(SELECT nextval('rota.job_id') FROM generate_series(1, %(count)s::int8)) AS ids,
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END,
       preset.max_attempts, preset.timeout
FROM (SELECT coalesce(%(lane)s::int4, (
        SELECT id FROM rota.lane
        WHERE queue = %(queue)s AND priority = %(priority)s::int2 AND NOT of_key))
) AS lane (id)
LEFT JOIN rota.queue_setting AS preset ON preset.queue = %(queue)s
WHERE lane.id IS NOT NULL
