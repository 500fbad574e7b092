-- Forget the counts of jobs that are out of sight, but for running totals; gives their queues.
-- Locks: the database. Walks: rota_count, which is short.
DELETE FROM rota_count
WHERE expires > -9e999 AND expires <= (julianday('now') - 2440587.5) * 86400.0
RETURNING queue;
