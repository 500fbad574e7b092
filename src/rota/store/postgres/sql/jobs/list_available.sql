-- Jobs that may be claimed, the last of each lane first; a null filter means any; args that are
-- hidden, or long, are not looked into. Locks nothing. A lane has the order of the transactions, so
-- these need not be the newest: if there are more than `size`, list_available_from.sql finds those.
-- Void entries of unique jobs are left out.
-- Walks log_order backwards from each lane's end, never further back than its cursor.
-- `brief`: without args, result and headers, and with the end of the last error alone.
SELECT job.id, job.task, CASE WHEN %(brief)s::bool THEN '{}' ELSE job.args::text END, lane.queue, lane.priority, 'available', job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at, NULL::timestamptz, NULL::timestamptz,
       NULL::text, CASE WHEN %(brief)s::bool AND job.errors IS NOT NULL
            THEN (SELECT '[' || jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000))::text || ']'
                  FROM (SELECT job.errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN job.errors::text END, NULL::text, false, job.unique_key, job.iteration, job.last_run, CASE WHEN NOT %(brief)s::bool THEN job.headers::text END
FROM rota.lane_used AS lane
CROSS JOIN LATERAL (
    SELECT * FROM rota.lane_place WHERE lane_place.lane = lane.id LIMIT 1
) AS place
CROSS JOIN LATERAL (
    (SELECT job.* FROM rota.log AS job
     WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
       AND (%(task)s::text IS NULL OR job.task = %(task)s)
       AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
           AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
       AND (job.unique_key IS NULL OR coalesce((
           SELECT true FROM rota.unique_key AS held
           WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
             AND held.entry = job.entry), false))
     ORDER BY job.lane DESC, job.xid DESC, job.id DESC LIMIT %(size)s::int8)
    UNION ALL
    (SELECT job.*
     FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
     JOIN rota.log AS job ON job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id
     WHERE (%(task)s::text IS NULL OR job.task = %(task)s)
       AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
           AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
       AND (job.unique_key IS NULL OR coalesce((
           SELECT true FROM rota.unique_key AS held
           WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
             AND held.entry = job.entry), false))
     LIMIT %(size)s::int8)
) AS job
WHERE (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(state)s::text IS NULL OR %(state)s = 'available')
ORDER BY job.id DESC LIMIT %(size)s::int8
