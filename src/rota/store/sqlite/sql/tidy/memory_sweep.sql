-- Forget what jobs remember that are gone: see note_sweep.sql.
-- Locks: the database. Walks: rota_memory_order and rota_job by its primary key, job by job.
WITH RECURSIVE place (job) AS (
    SELECT min(job) FROM rota_memory
    WHERE job >= abs(random()) % ((SELECT max(job) FROM rota_memory) + 1)
    UNION ALL
    SELECT (SELECT min(job) FROM rota_memory WHERE rota_memory.job > place.job) FROM place
    WHERE place.job IS NOT NULL
    LIMIT :size
)
DELETE FROM rota_memory
WHERE job IN (
    SELECT job FROM place WHERE NOT EXISTS (SELECT 1 FROM rota_job WHERE rota_job.id = place.job)
)
RETURNING job;
