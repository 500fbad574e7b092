-- Note of these keys (a JSON array) for how long their jobs hold them, as their newest enqueue
-- says.
-- Locks: the database. Walks: rota_unique by its primary key.
UPDATE rota_unique SET while_waiting = :while_waiting
WHERE key IN (SELECT value FROM json_each(:keys)) AND task = :task;
