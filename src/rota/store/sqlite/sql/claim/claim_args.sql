-- The args of these jobs (a JSON array of ids), which are long. Locks nothing. Walks: rota_job by
-- its primary key.
SELECT id, args FROM rota_job WHERE id IN (SELECT value FROM json_each(:jobs));
