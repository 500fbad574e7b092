-- Let jobs (a JSON array of ids) that are available wait for other jobs.
UPDATE rota_job
SET state = 'scheduled', scheduled_at = (julianday('now') - 2440587.5) * 86400.0 + :waiting
WHERE id IN (SELECT value FROM json_each(:jobs)) AND state = 'available'
RETURNING id, queue;
