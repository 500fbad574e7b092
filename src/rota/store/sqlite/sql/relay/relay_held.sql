-- The jobs of a queue that are running, with their leases and sessions. Locks nothing.
-- Walks: rota_job_running, as many entries as jobs run in the whole file.
SELECT session, id, lease FROM rota_job WHERE session IS NOT NULL AND queue = :queue;
