-- These jobs (a JSON array of ids) wait again: how long a debounce may push them back counts from
-- now.
-- Locks: the database. Walks: rota_unique_job.
UPDATE rota_unique SET first_at = (julianday('now') - 2440587.5) * 86400.0
WHERE job IN (SELECT value FROM json_each(:jobs));
