-- Which of these jobs (a JSON array of ids) the session still holds under this lease, and their
-- queues: two JSON arrays; and the moment, with the end of the retention of what ends now (`keep`
-- in seconds, or null). All in one row, as other threads of Python may run before each one.
-- Locks nothing: the transaction has the file. Walks: rota_job by its primary key, never by
-- rota_job_running (the + sees to that: a session may hold thousands of jobs).
SELECT json_group_array(rota_job.id), json_group_array(rota_job.queue), moment.now,
       (CAST((moment.now + :keep) / moment.step AS INTEGER) + 1) * moment.step
FROM (
    SELECT (julianday('now') - 2440587.5) * 86400.0 AS now, max(:keep / 32.0, 0.001) AS step
) AS moment
CROSS JOIN rota_job
WHERE rota_job.id IN (SELECT value FROM json_each(:jobs))
  AND +rota_job.lease = :lease
  AND +rota_job.session = :session;
