-- The ids of entries whose due time has come.
-- Locks nothing: the transaction that this is read in has the database.
SELECT id
FROM rota_cron
WHERE due <= (julianday('now') - 2440587.5) * 86400.0 AND NOT paused AND NOT undeclared
ORDER BY id
LIMIT :size;
