-- Jobs that may be claimed, with ids from `first` to `until`, newest first; a null filter means
-- any; args that are hidden, or long, are not looked into. Locks nothing. Void entries of unique
-- jobs are left out.
-- Walks: log_job backwards, past what was claimed and is still in the segments.
-- `brief`: without args, result and headers, and with the end of the last error alone.
SELECT job.id, job.task, CASE WHEN %(brief)s::bool THEN '{}' ELSE job.args::text END, lane.queue, lane.priority, 'available', job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at, NULL::timestamptz, NULL::timestamptz,
       NULL::text, CASE WHEN %(brief)s::bool AND job.errors IS NOT NULL
            THEN (SELECT '[' || jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000))::text || ']'
                  FROM (SELECT job.errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN job.errors::text END, NULL::text, false, job.unique_key, job.iteration, job.last_run,
       CASE WHEN NOT %(brief)s::bool THEN job.headers::text END
FROM rota.log AS job
-- As the view lane_place has it, in half as many probes: most rows may have been handed out.
LEFT JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids FROM rota.cursor AS place
    WHERE place.lane = job.lane ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place ON true
CROSS JOIN LATERAL (
    SELECT queue, priority, of_key FROM rota.lane
    WHERE lane.id = job.lane AND (place.xid IS NULL OR (job.xid, job.id) > (place.xid, place.id)
        OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
    LIMIT 1
) AS lane
WHERE job.id >= %(first_id)s::int8 AND job.id <= %(until)s::int8
  -- Where a queue has few lanes, rows of other queues are told by their lanes alone.
  AND coalesce(job.lane = ANY ((
      SELECT CASE WHEN count(*) <= 64 THEN array_agg(id) END
      FROM (SELECT id FROM rota.lane WHERE queue = %(queue)s LIMIT 65) AS lane)::int8[]), true)
  AND (place.xid IS NOT NULL OR lane.of_key)
  AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND (job.unique_key IS NULL OR coalesce((
      SELECT true FROM rota.unique_key AS held
      WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
        AND held.entry = job.entry), false))
  AND (%(first)s::text IS NULL OR job.unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s)
ORDER BY job.id DESC LIMIT %(size)s::int8
