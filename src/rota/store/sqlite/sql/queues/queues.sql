-- All queues, and how many of their jobs are in each state (null where a queue has none yet).
-- 'appended', 'claimed' and 'removed' are running totals: what is available is the difference.
-- Locks nothing. Walks: rota_count and rota_queue, which do not grow with the jobs, and
-- rota_job_running, which has what the workers hold.
WITH counted (queue, state, jobs) AS (
    SELECT queue, state, jobs FROM rota_count
    WHERE expires > (julianday('now') - 2440587.5) * 86400.0
    UNION ALL
    SELECT queue, 'running', 1 FROM rota_job INDEXED BY rota_job_running WHERE session IS NOT NULL
), known (name) AS (
    SELECT name FROM rota_queue UNION SELECT queue FROM rota_count
)
SELECT known.name, coalesce(rota_queue.paused, 0), counted.state, sum(counted.jobs)
FROM known
LEFT JOIN rota_queue ON rota_queue.name = known.name
LEFT JOIN counted ON counted.queue = known.name
GROUP BY known.name, counted.state
ORDER BY known.name;
