-- The ids of entries whose due time has come. Those that were put aside (a JSON array of ids) come
-- last, the longest waiting first.
-- Locks nothing: the transaction in which this is read has the database.
SELECT id
FROM rota_cron
WHERE due <= (julianday('now') - 2440587.5) * 86400.0 AND NOT paused AND NOT undeclared
ORDER BY (SELECT key FROM json_each(:aside) WHERE value = rota_cron.id), id
LIMIT :size;
