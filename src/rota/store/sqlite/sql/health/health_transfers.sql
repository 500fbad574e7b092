-- Transfers between databases that wait to be finished (see store/transfers.py): how many, up to
-- 1,000, for how many seconds the first has waited, and its job. They are due so late that hardly
-- anything else is.
-- Locks nothing. Walks: the end of rota_job_waiting.
SELECT count(*), (julianday('now') - 2440587.5) * 86400.0 - min(enqueued_at), min(id)
FROM (
    SELECT id, enqueued_at, task FROM rota_job WHERE scheduled_at >= :never
    ORDER BY scheduled_at LIMIT 1000
)
WHERE task = :task
HAVING count(*) > 0;
