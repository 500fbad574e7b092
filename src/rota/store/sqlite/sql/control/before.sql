-- Where these jobs (a JSON array of ids) are before something is done to them, for the counts: what an
-- update returns is only where they came.
-- Locks nothing; read in the transaction of the update. Walks: rota_job by its primary key.
SELECT id, queue, state, keep_until
FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs));
