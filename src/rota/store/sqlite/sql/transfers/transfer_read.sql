-- All that is known of those of these jobs (a JSON array of ids) that wait, in the order of their
-- ids.
-- Of a job that was passed on to those who know its task, the key of its fair share is not known
-- any more.
-- Locks nothing; read in the transaction that deletes them. Walks: rota_job, rota_lane and
-- rota_limit by their primary keys, rota_unique by its own.
SELECT job.id, job.task, job.args, job.queue, job.priority, job.attempt, job.max_attempts, job.timeout,
       job.enqueued_at, job.scheduled_at, job.errors, job.iteration, job.last_run, job.headers,
       held.key, coalesce(held.while_waiting, 0), held.until, held.first_at,
       limited.key, limited.running, limited.rate_count, limited.rate_seconds,
       CASE WHEN lane.task IS NULL THEN nullif(lane.fair, '') END
FROM rota_job AS job
LEFT JOIN rota_unique AS held
  ON held.key = job.unique_key AND held.task = job.task AND held.job = job.id
LEFT JOIN rota_lane AS lane ON lane.id = job.lane
LEFT JOIN rota_limit AS limited ON limited.id = lane.limit_id
WHERE job.id IN (SELECT value FROM json_each(:jobs))
  AND +job.state IN ('scheduled', 'available', 'retryable')
ORDER BY job.id;
