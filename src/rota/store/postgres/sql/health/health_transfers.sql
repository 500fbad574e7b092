-- Transfers between databases that wait to be finished (see store/transfers.py): how many, up to
-- 1,000, for how many seconds the first has waited, and its job. They are due so late that hardly
-- anything else is.
-- Locks nothing. Walks: the end of timer_due.
SELECT count(*), extract(epoch FROM clock_timestamp() - min(enqueued_at))::float8, min(id)
FROM (
    SELECT id, enqueued_at, task FROM rota.timer WHERE run_at >= %(never)s::timestamptz
    ORDER BY run_at, id LIMIT 1000
) AS last
WHERE task = %(task)s
HAVING count(*) > 0
