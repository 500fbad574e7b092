-- These jobs (a JSON array of ids) have ended: note that they hold their keys only until a period
-- is over.
-- Locks: the database. Walks: rota_unique_job.
UPDATE rota_unique SET ended = 1
WHERE job IN (SELECT value FROM json_each(:jobs)) AND until > (julianday('now') - 2440587.5) * 86400.0;
