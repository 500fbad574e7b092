-- The queues, states and nodes of these jobs (a JSON array of ids) before an update, for the
-- counts: the update returns only the new ones.
-- Locks nothing; read in the transaction of the update. Walks: rota_job by its primary key.
SELECT id, queue, state, keep_until, json_extract(headers, '$."rota.node"')
FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs));
