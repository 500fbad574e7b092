-- Forget what these jobs (a JSON array of ids) remember.
-- Locks: the database. Walks: rota_memory_order.
DELETE FROM rota_memory WHERE job IN (SELECT value FROM json_each(:jobs));
