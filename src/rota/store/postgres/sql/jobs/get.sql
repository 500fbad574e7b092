-- Look jobs up by their ids, wherever they are. Locks nothing.
-- A time that Python cannot hold, in any time zone, is shown as the last or the first that Python
-- can.
SELECT id, task, args::text, queue, priority, state, attempt, max_attempts, timeout, enqueued_at,
       CASE WHEN scheduled_at IS NOT NULL
            THEN greatest(least(scheduled_at, '9999-12-30 00:00+00'), '0001-01-02 00:00+00') END,
       finished_at, result::text, errors::text, worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       unique_key, iteration, last_run, headers::text
FROM rota.job WHERE id = ANY (%(jobs)s::int8[])
