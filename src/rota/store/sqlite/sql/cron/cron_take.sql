-- Those of these entries (a JSON array of ids) whose due time has come, and the time.
SELECT name, expression, task, timezone, missed, jitter, args, parameter, queue, priority,
       max_attempts, timeout, options, paused, declared, undeclared, due, last, id, seq, since,
       moment.now
FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
CROSS JOIN rota_cron
WHERE id IN (SELECT value FROM json_each(:entries)) AND due <= moment.now
ORDER BY id;
