-- Forget a batch of keys whose period is over and whose jobs have ended; and those of an enqueue
-- that never stored its job, of a process that died in between on a connection without
-- transactions.
-- Locks: the database. Walks: rota_unique_until from its left end, rota_unique_job.
DELETE FROM rota_unique
WHERE (key, task) IN (
    SELECT key, task FROM (
        SELECT key, task FROM rota_unique WHERE until <= (julianday('now') - 2440587.5) * 86400.0 AND ended
        UNION ALL
        SELECT key, task FROM rota_unique WHERE job IS NULL AND first_at < (julianday('now') - 2440587.5) * 86400.0 - 60.0
    )
    LIMIT :size
)
RETURNING key;
