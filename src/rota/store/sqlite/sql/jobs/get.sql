-- These jobs (a JSON array of ids), without those past their retention. Locks nothing.
-- Walks: rota_job and rota_session by their primary keys.
SELECT job.id, job.task, job.args, job.queue, job.priority, job.state, job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at, job.scheduled_at, job.finished_at,
       job.result, job.errors, session.host || ':' || session.pid, job.cancel_requested,
       job.unique_key, job.iteration, job.last_run, job.headers
FROM rota_job AS job
LEFT JOIN rota_session AS session ON session.id = job.session
WHERE job.id IN (SELECT value FROM json_each(:jobs))
  AND (job.keep_until IS NULL
       OR job.keep_until > (julianday('now') - 2440587.5) * 86400.0);
