-- In how many seconds the next waiting job is due (negative: it is overdue); null if none waits.
-- Locks nothing. Walks: rota_job_waiting, its leftmost entry.
SELECT min(scheduled_at) - (julianday('now') - 2440587.5) * 86400.0
FROM rota_job
WHERE scheduled_at IS NOT NULL;
