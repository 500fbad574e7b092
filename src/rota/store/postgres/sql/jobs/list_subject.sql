-- Jobs that hold a unique key and have not ended, of the keys from `first` to `last`, newest first; a
-- null filter means any. Locks nothing. Walks unique_key's primary key, then each job by its id.
-- A time that Python cannot hold, in any time zone, is shown as the last or the first that Python can.
SELECT job.id, job.task, job.args::text, job.queue, job.priority, job.state, job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at,
       CASE WHEN job.scheduled_at IS NOT NULL
            THEN greatest(least(job.scheduled_at, '9999-12-30 00:00+00'), '0001-01-02 00:00+00') END,
       job.finished_at, job.result::text, job.errors::text, job.worker,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = job.id),
       job.unique_key, job.iteration, job.last_run, job.headers::text
FROM rota.unique_key AS held
CROSS JOIN LATERAL (SELECT * FROM rota.job WHERE job.id = held.job) AS job
WHERE held.key >= %(first)s AND held.key <= %(last)s AND held.state <> 'ended'
  AND job.state NOT IN ('completed', 'discarded', 'cancelled')
  AND (%(state)s::text IS NULL OR job.state = %(state)s)
  AND (%(queue)s::text IS NULL OR job.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND job.id >= %(since)s::int8 AND job.id <= %(until)s::int8
ORDER BY job.id DESC LIMIT %(size)s::int8
