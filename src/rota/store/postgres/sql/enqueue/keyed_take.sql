-- Take the unique keys of jobs that a COPY appends in the same transaction. Gives the ids of the jobs whose keys were
-- free, and the segment for them. Lists and locks as in keyed_now.sql, waking as in enqueue.sql.
WITH fresh AS (
    INSERT INTO rota.unique_key (job, until, lane, entry, while_waiting, state, task, key)
    SELECT id, %(until)s::timestamptz, lane, 0, %(while_waiting)s::bool, 'available', %(task)s, key
    FROM ROWS FROM (
        unnest(%(jobs)s::text::int8[]), json_array_elements_text(%(keys)s::json),
        unnest(%(lanes)s::text::int4[])
    ) AS wanted (id, key, lane)
    ON CONFLICT (key, task) DO NOTHING
    RETURNING job
)
SELECT coalesce(stored.ids, '{}'), (SELECT last_value %% 4 FROM rota.log_turn),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
FROM (SELECT array_agg(job) AS ids FROM fresh) AS stored
