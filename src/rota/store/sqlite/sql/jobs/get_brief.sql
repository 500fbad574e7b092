-- These jobs (a JSON array of ids), without those past their retention, and without args, result
-- and headers; of the errors the end of the last one. Locks nothing.
-- Walks: rota_job and rota_session by their primary keys.
SELECT job.id, job.task, '{}', job.queue, job.priority, job.state, job.attempt,
       job.max_attempts, job.timeout, job.enqueued_at, job.scheduled_at, job.finished_at,
       NULL,
       CASE WHEN job.errors IS NOT NULL THEN json_array(json_object(
           'attempt', json_extract(job.errors, '$[#-1].attempt'), 'at', json_extract(job.errors, '$[#-1].at'),
           'exception', json_extract(job.errors, '$[#-1].exception'),
           'message', substr(json_extract(job.errors, '$[#-1].message'), 1, 300),
           'traceback', substr(json_extract(job.errors, '$[#-1].traceback'), -2000))) END,
       session.host || ':' || session.pid, job.cancel_requested,
       job.unique_key, job.iteration, job.last_run, NULL
FROM rota_job AS job
LEFT JOIN rota_session AS session ON session.id = job.session
WHERE job.id IN (SELECT value FROM json_each(:jobs))
  AND (job.keep_until IS NULL
       OR job.keep_until > (julianday('now') - 2440587.5) * 86400.0);
