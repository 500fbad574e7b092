-- Ask those of these jobs (a JSON array of ids) that are running to stop.
-- Locks: the database. Walks: rota_job by its primary key.
UPDATE rota_job
SET cancel_requested = 1
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +state = 'running';
