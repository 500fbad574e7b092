-- These jobs (a JSON array of ids) start: free the keys that they hold only while they wait.
-- Locks: the database. Walks: rota_unique_job.
DELETE FROM rota_unique
WHERE job IN (SELECT value FROM json_each(:jobs)) AND while_waiting
  AND (until IS NULL OR until <= (julianday('now') - 2440587.5) * 86400.0);
