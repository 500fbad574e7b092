-- End the sleeps and waits of these jobs (a JSON array of ids) now, but for waits without an end.
-- Locks: the database. Walks: rota_memory_order.
UPDATE rota_memory SET until = (julianday('now') - 2440587.5) * 86400.0
WHERE job IN (SELECT value FROM json_each(:jobs))
  AND until BETWEEN (julianday('now') - 2440587.5) * 86400.0 AND (julianday('now') - 2440587.5) * 86400.0 + 50 * 31557600.0;
