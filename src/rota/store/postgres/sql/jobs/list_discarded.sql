-- Discarded jobs, newest first; a null filter means any; args that are hidden, or long,
-- are not looked into. Locks nothing. Walks finished_job backwards, in the
-- segment of discarded jobs alone: list_finished.sql would pass all that were completed.
-- `brief`: without args, result and headers, and with the end of the last error alone; a short one
-- is taken as it is, which takes half the time where a page groups a thousand.
SELECT id, task, CASE WHEN %(brief)s::bool THEN '{}' ELSE args::text END, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       NULL::timestamptz, finished_at, CASE WHEN NOT %(brief)s::bool THEN result::text END, CASE WHEN %(brief)s::bool AND errors IS NOT NULL
            THEN (SELECT '[' || CASE WHEN pg_column_size(last) <= 2000 THEN last ELSE jsonb_build_object(
                             'attempt', last -> 'attempt', 'at', last -> 'at', 'exception', last -> 'exception',
                             'message', left(last ->> 'message', 300),
                             'traceback', right(last ->> 'traceback', 2000)) END::text || ']'
                  FROM (SELECT errors -> -1 AS last OFFSET 0) AS error)
            WHEN NOT %(brief)s::bool THEN errors::text END, NULL::text,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, CASE WHEN NOT %(brief)s::bool THEN headers::text END
FROM rota.finished AS job
WHERE segment = -1 AND keep_until > now()
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (pg_column_size(args) <= 16384 AND args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(headers ->> 'rota.redact', ',')), true)))
  AND id >= %(since)s::int8 AND id <= %(until)s::int8
  AND (%(first)s::text IS NULL OR unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s)
ORDER BY id DESC LIMIT %(size)s::int8
