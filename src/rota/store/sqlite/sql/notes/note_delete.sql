-- Forget what was told of these jobs (a JSON array of ids).
-- Locks: the database. Walks: rota_note by its primary key.
DELETE FROM rota_note WHERE job IN (SELECT value FROM json_each(:jobs));
