-- Let jobs (a JSON array of ids) that waited for other jobs wait for their time.
UPDATE rota_job
SET scheduled_at = coalesce(:at, (julianday('now') - 2440587.5) * 86400.0 + :delay)
WHERE id IN (SELECT value FROM json_each(:jobs));
