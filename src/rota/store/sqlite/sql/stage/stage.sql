-- Make these jobs (a JSON array of ids), which are due, available.
-- Locks: the database. Walks: rota_job by its primary key.
UPDATE rota_job
SET state = 'available', scheduled_at = NULL
WHERE id IN (SELECT value FROM json_each(:jobs));
