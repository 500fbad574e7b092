-- The ids of the newest jobs in any state (of a queue, of a task; null means any).
-- Locks nothing. Walks: rota_job by its primary key, backwards.
SELECT id
FROM rota_job
WHERE (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task) AND id <= :until AND id >= :since
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0)
ORDER BY id DESC
LIMIT :size;
