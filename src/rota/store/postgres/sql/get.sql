-- Look jobs up by their ids, wherever they are. Locks nothing.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       scheduled_at, finished_at, result::text, errors::text, worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run
FROM rota.job WHERE id = ANY (%(jobs)s::int8[])
