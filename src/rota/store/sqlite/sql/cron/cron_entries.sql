-- All entries by name, or those of these names (a JSON array; null: all), and the time.
-- Locks nothing.
SELECT name, expression, task, timezone, missed, jitter, args, parameter, queue, priority,
       max_attempts, timeout, options, paused, declared, undeclared, due, last, id, seq, since,
       (julianday('now') - 2440587.5) * 86400.0
FROM rota_cron
WHERE :names IS NULL OR name IN (SELECT value FROM json_each(:names))
ORDER BY name;
