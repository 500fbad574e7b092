-- The ids of all discarded jobs (of a queue, of a task; null means any), without those past their
-- retention. Locks nothing; read in the transaction that retries them.
-- Walks: rota_job_finished, the discarded ones.
SELECT id
FROM rota_job
WHERE state = 'discarded' AND finished_at IS NOT NULL
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0);
