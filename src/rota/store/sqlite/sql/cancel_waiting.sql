-- Cancel those of these jobs (a JSON array of ids) that have not started; they are kept for a day.
-- Locks: the database. Walks: rota_job by its primary key.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_job
SET state = 'cancelled', scheduled_at = NULL,
    finished_at = (SELECT now FROM moment), keep_until = (SELECT now FROM moment) + 86400.0
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +state IN ('scheduled', 'available', 'blocked', 'retryable');
