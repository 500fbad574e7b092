-- What a dead session holds, and which of it may have begun: suspects begin only in a lot.
-- Locks nothing. Walks: rota_job_running.
SELECT id, json_extract(errors, '$[#-1].suspects') IS NULL
           OR id IN (SELECT value FROM json_each((SELECT lot FROM rota_session WHERE id = :session)))
FROM rota_job WHERE session = :session;
