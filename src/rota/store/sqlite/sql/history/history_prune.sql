-- Remove the minutes of these queues (a JSON array) that lie before this one. Locks: the database.
-- Walks: rota_history by its primary key, the beginning of each queue: a row of each, where a
-- minute was recorded a minute ago.
DELETE FROM rota_history
WHERE queue IN (SELECT value FROM json_each(:queues)) AND minute < :before;
