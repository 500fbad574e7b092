-- Jobs in a lease, newest first; a null filter means any; args that are hidden are not
-- looked into. Locks nothing. Walks all leases, which are few, then
-- log_job for each job. As the view rota.job has them, which would also look for running jobs in the timer.
SELECT held.id, job.task, job.args::text, lane.queue, lane.priority, 'running', (job.attempt + 1)::smallint,
       job.max_attempts, job.timeout, job.enqueued_at, NULL::timestamptz, NULL::timestamptz, NULL::text,
       job.errors::text, session.host || ':' || session.pid,
       EXISTS (SELECT FROM rota.cancel_request AS request WHERE request.job = held.id),
       job.unique_key, job.iteration, job.last_run, job.headers::text
FROM rota.lease
CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
CROSS JOIN LATERAL (
    SELECT entry.* FROM rota.log AS entry WHERE entry.id = held.id
    ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
) AS job
JOIN rota.lane ON lane.id = job.lane
JOIN rota.session ON session.id = lease.session
WHERE (%(queue)s::text IS NULL OR lane.queue = %(queue)s)
  AND (%(task)s::text IS NULL OR job.task = %(task)s)
  AND (%(path)s::text[] IS NULL OR (job.args #>> %(path)s::text[] = %(value)s
      AND coalesce((%(path)s::text[])[1] <> ALL (string_to_array(job.headers ->> 'rota.redact', ',')), true)))
  AND held.id >= %(since)s::int8 AND held.id <= %(until)s::int8
ORDER BY held.id DESC LIMIT %(size)s::int8
