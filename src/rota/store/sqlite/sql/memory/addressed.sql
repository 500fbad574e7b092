-- The state of a job that a signal is for. Locks nothing. Walks: rota_job by its primary key.
SELECT state FROM rota_job
WHERE id = :job AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0);
