-- What these jobs (a JSON array of ids) remember. Locks nothing.
-- Walks: rota_memory_order.
SELECT job, id, kind, name, ref, value, at, until, until - (julianday('now') - 2440587.5) * 86400.0
FROM rota_memory
WHERE job IN (SELECT value FROM json_each(:jobs))
ORDER BY job, id;
