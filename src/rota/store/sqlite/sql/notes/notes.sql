-- What is known of the runs of these jobs (a JSON array of ids). Locks nothing.
-- Walks: rota_note by its primary key.
SELECT job, line, lease, number, attempt, at, fraction, level, text FROM rota_note
WHERE job IN (SELECT value FROM json_each(:jobs));
