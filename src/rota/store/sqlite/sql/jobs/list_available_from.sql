-- The ids of the available jobs from `since` to `until` (of a queue, of a task; null means any), the newest first.
-- Locks nothing. Walks: rota_job by its primary key, backwards.
SELECT id
FROM rota_job NOT INDEXED
WHERE id <= :until AND id >= :since AND state = 'available'
  AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
ORDER BY id DESC
LIMIT :size;
