-- Lock entries whose due time has come; those that another worker deals with are left out. Those
-- that were put aside come last, the longest waiting first.
-- Locks: their rows, FOR NO KEY UPDATE, waiting for none; no row version. What this statement saw
-- may be older than the lock, so cron_take.sql looks again.
SELECT entry.id
FROM rota.cron_entry AS entry
JOIN rota.cron ON cron.id = entry.id
WHERE cron.due <= clock_timestamp() AND NOT cron.paused AND NOT cron.undeclared
ORDER BY array_position(%(aside)s::int4[], entry.id) NULLS FIRST, entry.id
LIMIT %(size)s::int8
FOR NO KEY UPDATE OF entry SKIP LOCKED
