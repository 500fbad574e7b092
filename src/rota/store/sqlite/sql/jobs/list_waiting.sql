-- The ids of the newest scheduled or retryable jobs (of a queue, of a task; null means any).
-- Locks nothing. Walks: rota_job_waiting as a whole, and keeps the newest.
SELECT id
FROM rota_job INDEXED BY rota_job_waiting
WHERE scheduled_at IS NOT NULL AND state = :state
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task) AND id <= :until AND id >= :since
ORDER BY id DESC
LIMIT :size;
