-- Make every discarded job (of a queue, of a task; null means any) available again, with all its
-- attempts; errors stay readable. Unique ones only if they have their key again. Gives their ids.
-- Locks: the database. Walks: rota_job_finished, the discarded ones.
UPDATE rota_job
SET state = 'available', attempt = 0, finished_at = NULL
WHERE state = 'discarded' AND finished_at IS NOT NULL
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (+unique_key IS NULL
       OR EXISTS (SELECT 1 FROM rota_unique WHERE job = rota_job.id AND NOT ended))
RETURNING id, queue;
