-- The id that was given last, to a job that may not be committed yet; 0 before the first one. Locks
-- nothing.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM rota.job_id
