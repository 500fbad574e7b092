-- The jobs that are due, in the order of their time.
-- Locks nothing; read in the transaction of stage.sql. Walks: rota_job_waiting from its left end.
SELECT id, queue, state
FROM rota_job
WHERE scheduled_at <= (julianday('now') - 2440587.5) * 86400.0
ORDER BY scheduled_at
LIMIT :size;
