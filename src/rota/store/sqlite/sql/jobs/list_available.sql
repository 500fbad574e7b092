-- The ids of the newest available jobs (of a queue, of a task; null means any). Locks nothing.
-- Walks: rota_job_available and rota_job_keyed as a whole, and keeps the newest.
SELECT id
FROM (
    SELECT id, queue, task FROM rota_job INDEXED BY rota_job_available
    WHERE state = 'available' AND lane IS NULL
    UNION ALL
    SELECT id, queue, task FROM rota_job INDEXED BY rota_job_keyed
    WHERE state = 'available' AND lane IS NOT NULL
)
WHERE (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task) AND id <= :until AND id >= :since
ORDER BY id DESC
LIMIT :size;
