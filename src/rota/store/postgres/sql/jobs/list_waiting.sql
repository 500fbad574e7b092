-- Jobs that wait for their time, newest first; a null filter means any; args that are hidden are not
-- looked into. Locks nothing.
-- A time that Python cannot hold, in any time zone, is shown as the last or the first that Python can.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       greatest(least(scheduled_at, '9999-12-30 00:00+00'), '0001-01-02 00:00+00'),
       finished_at, result::text, errors::text, worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, headers::text
FROM rota.job
WHERE state IN ('scheduled', 'retryable')
  AND (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(headers ->> 'rota.redact', ',')), true)))
  AND id >= %(since)s::int8 AND id <= %(until)s::int8
ORDER BY id DESC LIMIT %(size)s::int8
