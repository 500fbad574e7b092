-- Take those of these keys (a JSON array) that are free, for jobs of a task; gives the taken keys.
-- Locks: the database, from here to the end of the transaction. Walks: rota_unique by its primary
-- key.
-- It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_unique (key, task, until, first_at, while_waiting)
SELECT value, :task, :until, (julianday('now') - 2440587.5) * 86400.0, :while_waiting
FROM json_each(:keys)
WHERE true
ON CONFLICT DO NOTHING
RETURNING key;
