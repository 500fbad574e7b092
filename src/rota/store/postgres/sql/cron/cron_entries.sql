-- All entries by name, or those of these names (null: all), and the time.
-- Locks nothing. Reads the newest mark of each from the index's right end.
SELECT name, expression, task, timezone, missed, jitter, args::text, parameter, queue, priority,
       max_attempts, timeout, options::text, paused, declared, undeclared, due, last, id, seq, since,
       clock_timestamp()
FROM rota.cron
WHERE %(names)s::text[] IS NULL OR name = ANY (%(names)s::text[])
ORDER BY name
