-- Set back until when these jobs (a JSON array of ids) sleep and wait.
-- Locks: the database. Walks: rota_memory_order.
UPDATE rota_memory SET until = until - :seconds, due = due - :seconds, at = at - :seconds
WHERE job IN (SELECT value FROM json_each(:jobs));
