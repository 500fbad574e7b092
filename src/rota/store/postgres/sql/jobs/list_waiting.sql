-- Jobs that wait for their time, newest first; a null filter means any; args that are hidden, or
-- long, are not looked into. Void entries of unique jobs are left out. Locks nothing.
-- Walks: timer's primary key backwards, until there are enough; the view rota.job would be read
-- whole and sorted.
-- A time that Python cannot hold, in any time zone, is shown as the last or the first that Python
-- can.
-- `brief`: without args, result and headers, and with the end of the last error alone.
SELECT job.id, job.task, CASE WHEN %(brief)s::bool THEN '{}' ELSE job.args::text END, lane.queue, lane.priority, job.state, job.attempt, job.max_attempts,
       job.timeout, job.enqueued_at,
       greatest(least(job.run_at, '9999-12-30 00:00+00'), '0001-01-02 00:00+00'),
       NULL::timestamptz, NULL::text, CASE WHEN %(brief)s::bool AND job.errors IS NOT NULL
            THEN (SELECT '[' || jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000))::text || ']'
                  FROM (SELECT job.errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN job.errors::text END, NULL::text,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       job.unique_key, job.iteration, job.last_run, CASE WHEN NOT %(brief)s::bool THEN job.headers::text END
FROM rota.timer AS job
CROSS JOIN LATERAL (SELECT queue, priority FROM rota.lane WHERE lane.id = job.lane LIMIT 1) AS lane
WHERE job.state IN ('scheduled', 'retryable')
  AND (%(state)s::text IS NULL OR job.state = %(state)s)
  AND (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND job.id >= %(since)s::int8 AND job.id <= %(until)s::int8
  AND (%(first)s::text IS NULL OR job.unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s)
  AND (%(path)s::text[] IS NULL OR (pg_column_size(job.args) <= 16384 AND job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND (job.unique_key IS NULL OR coalesce((
      SELECT true FROM rota.unique_key AS held
      WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
        AND held.entry = job.entry), false))
ORDER BY job.id DESC LIMIT %(size)s::int8
