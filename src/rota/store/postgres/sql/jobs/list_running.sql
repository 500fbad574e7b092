-- Jobs in a lease, newest first; a null filter means any. Locks nothing.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       scheduled_at, finished_at, result::text, errors::text, worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, headers::text
FROM rota.job
WHERE state = 'running'
  AND (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND id >= %(since)s::int8 AND id <= %(until)s::int8
ORDER BY id DESC LIMIT %(size)s::int8
