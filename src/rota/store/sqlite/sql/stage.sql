-- Make due jobs available, those first whose time came first; gives their ids.
-- Locks: the database. Walks: rota_job_waiting from its left end.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_job
SET state = 'available', scheduled_at = NULL
WHERE id IN (
    SELECT id FROM rota_job
    WHERE scheduled_at <= (SELECT now FROM moment)
    ORDER BY scheduled_at
    LIMIT :size
)
RETURNING id;
