-- Set back the times of the keys of these jobs (a JSON array of ids). Locks: the database. Walks:
-- rota_unique_job.
UPDATE rota_unique SET first_at = first_at - :seconds, until = until - :seconds
WHERE job IN (SELECT value FROM json_each(:jobs));
