-- Those of the locked entries whose due time has come, as they are now that they are locked.
-- A statement of its own: the one that locks still sees the snapshot it began with, and would deal
-- with some entries a second time.
SELECT name, expression, task, timezone, missed, jitter, args::text, parameter, queue, priority,
       max_attempts, timeout, options::text, paused, declared, undeclared, due, last, id, seq, since,
       statement_timestamp()
FROM rota.cron
WHERE id = ANY (%(entries)s::int4[])
  AND due <= statement_timestamp() AND NOT paused AND NOT undeclared
ORDER BY id
