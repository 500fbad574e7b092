-- Each queue and priority that has something to claim, and how long ago the job that is next in it
-- was enqueued; a null priority stands for a queue's end. Counts nothing.
-- Locks nothing. Walks: rota_count and rota_queue, by which queues are known, and rota_job_available:
-- one probe for the lane and one for its first job.
WITH RECURSIVE known (name) AS (
    SELECT name FROM rota_queue UNION SELECT queue FROM rota_count
), lane (queue, priority, paused) AS (
    SELECT known.name, (SELECT min(priority) FROM rota_job
                        WHERE state = 'available' AND queue = known.name),
           coalesce(rota_queue.paused, 0)
    FROM known LEFT JOIN rota_queue ON rota_queue.name = known.name
    UNION ALL
    SELECT queue, (SELECT min(priority) FROM rota_job
                   WHERE state = 'available' AND queue = lane.queue
                     AND priority > lane.priority), paused
    FROM lane WHERE priority IS NOT NULL
)
SELECT queue, priority, paused, (julianday('now') - 2440587.5) * 86400.0 - (
    SELECT enqueued_at FROM rota_job
    WHERE state = 'available' AND rota_job.queue = lane.queue
      AND rota_job.priority = lane.priority
    ORDER BY id LIMIT 1)
FROM lane WHERE priority IS NOT NULL
ORDER BY queue, priority;
