-- These jobs (a JSON array of ids) have ended: free their keys, but for those whose period is not
-- over.
-- Locks: the database. Walks: rota_unique_job.
DELETE FROM rota_unique
WHERE job IN (SELECT value FROM json_each(:jobs))
  AND (until IS NULL OR until <= (julianday('now') - 2440587.5) * 86400.0);
