-- Finished jobs, newest first; a null filter means any; args that are hidden are not
-- looked into. Locks nothing.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       scheduled_at, finished_at, result::text, errors::text, worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, headers::text
FROM rota.job
WHERE state IN ('completed', 'discarded', 'cancelled')
  AND (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(headers ->> 'rota.redact', ',')), true)))
  AND id >= %(since)s::int8 AND id <= %(until)s::int8
  AND (%(first)s::text IS NULL OR unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s)
ORDER BY id DESC LIMIT %(size)s::int8
