-- Remove a batch of finished jobs that are past their retention; gives their ids. A batch is small
-- because all other writers wait for it.
-- Locks: the database. Walks: rota_job_kept from its left end.
DELETE FROM rota_job
WHERE id IN (
    SELECT id FROM rota_job
    WHERE keep_until <= (julianday('now') - 2440587.5) * 86400.0
    ORDER BY keep_until
    LIMIT :size
)
RETURNING id;
