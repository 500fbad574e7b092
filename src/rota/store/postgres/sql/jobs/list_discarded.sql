-- Discarded jobs, newest first; a null filter means any; args that are hidden are not
-- looked into. Locks nothing. Walks finished_job backwards, in the
-- segment of discarded jobs alone: list_finished.sql would pass all that were completed.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       NULL::timestamptz, finished_at, result::text, errors::text, NULL::text,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, headers::text
FROM rota.finished AS job
WHERE segment = -1 AND keep_until > now()
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(headers ->> 'rota.redact', ',')), true)))
  AND id >= %(since)s::int8 AND id <= %(until)s::int8
  AND (%(first)s::text IS NULL OR unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s)
ORDER BY id DESC LIMIT %(size)s::int8
