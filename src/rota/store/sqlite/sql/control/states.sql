-- The states of these jobs (a JSON array of ids), without those past their retention.
-- Locks nothing. Walks: rota_job by its primary key.
SELECT id, state
FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0);
