-- Cancel those of these jobs (a JSON array of ids) that have not started; they are kept for a day, rounded
-- up. Gives them as they are now.
-- Locks: the database. Walks: rota_job by its primary key.
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = 'cancelled', scheduled_at = NULL,
    finished_at = (SELECT now FROM moment), keep_until = (SELECT kept FROM moment)
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +state IN ('scheduled', 'available', 'blocked', 'retryable')
RETURNING id, queue, state, keep_until;
