-- All queues, and how many of their jobs are in each state (null where a queue has none).
-- Locks nothing. Walks: each partial index of rota_job from end to end, and no row of the table;
-- blocked jobs do not exist yet.
WITH counted (queue, state, jobs) AS (
    SELECT queue, 'available', count(*)
    FROM rota_job INDEXED BY rota_job_available WHERE state = 'available' GROUP BY 1
    UNION ALL
    SELECT queue, state, count(*)
    FROM rota_job INDEXED BY rota_job_waiting WHERE scheduled_at IS NOT NULL GROUP BY 1, 2
    UNION ALL
    SELECT queue, 'running', count(*)
    FROM rota_job INDEXED BY rota_job_running WHERE session IS NOT NULL GROUP BY 1
    UNION ALL
    SELECT queue, state, count(*)
    FROM rota_job INDEXED BY rota_job_finished WHERE finished_at IS NOT NULL GROUP BY 1, 2
)
SELECT rota_queue.name, rota_queue.paused, counted.state, counted.jobs
FROM rota_queue
LEFT JOIN counted ON counted.queue = rota_queue.name
ORDER BY rota_queue.name;
