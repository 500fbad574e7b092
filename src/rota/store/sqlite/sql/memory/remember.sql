-- Append the result of a step, if the session still holds the job under this lease; no row: it does
-- not.
-- Locks: the database. Walks: rota_job by its primary key.
INSERT INTO rota_memory (job, at, kind, name, value)
SELECT :job, (julianday('now') - 2440587.5) * 86400.0, 'step', :name, :value
FROM rota_job WHERE id = :job AND +lease = :lease AND +session = :session
RETURNING id;
