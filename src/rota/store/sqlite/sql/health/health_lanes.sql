-- Each queue and priority that has something to claim, jobs that were passed on apart by their
-- tasks, and how long ago the job that is next in it was enqueued; a null priority stands for a
-- queue's end. Counts no jobs. Key lanes are left out where their limit has no place: their jobs
-- wait for something else than a worker.
-- Locks nothing. Walks: rota_count and rota_queue, by which queues are known, and
-- rota_job_available: one probe for the lane and one for its first job; rota_lane_order, and one
-- probe of rota_job_keyed for each of its lanes; rota_limit_start_order for those whose limit has a
-- rate.
WITH RECURSIVE known (name) AS (
    SELECT name FROM rota_queue UNION SELECT queue FROM rota_count
), place (queue, priority) AS (
    SELECT known.name, (SELECT min(priority) FROM rota_job
                        WHERE state = 'available' AND lane IS NULL AND queue = known.name)
    FROM known
    UNION ALL
    SELECT queue, (SELECT min(priority) FROM rota_job
                   WHERE state = 'available' AND lane IS NULL AND queue = place.queue
                     AND priority > place.priority)
    FROM place WHERE priority IS NOT NULL
), held (limit_id, jobs) AS MATERIALIZED (
    SELECT rota_lane.limit_id, count(*)
    FROM rota_job INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = rota_job.lane
    WHERE rota_job.session IS NOT NULL AND rota_job.lane IS NOT NULL
    GROUP BY rota_lane.limit_id
), next (queue, priority, task, enqueued_at) AS (
    SELECT queue, priority, NULL, (
        SELECT enqueued_at FROM rota_job
        WHERE state = 'available' AND lane IS NULL AND rota_job.queue = place.queue
          AND rota_job.priority = place.priority
        ORDER BY id LIMIT 1)
    FROM place WHERE priority IS NOT NULL
    UNION ALL
    SELECT queue, priority, task, (
        SELECT enqueued_at FROM rota_job
        WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id
        ORDER BY id LIMIT 1)
    FROM rota_lane
    LEFT JOIN rota_limit ON rota_limit.id = rota_lane.limit_id
    WHERE coalesce(rota_limit.running > coalesce(
        (SELECT jobs FROM held WHERE held.limit_id = rota_lane.limit_id), 0), true)
      AND (rota_limit.rate_count IS NULL OR rota_limit.rate_count > coalesce(
        (SELECT sum(start.jobs) FROM rota_limit_start AS start
         WHERE start.limit_id = rota_lane.limit_id
           AND start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds), 0))
)
SELECT next.queue, priority, coalesce(rota_queue.paused, 0),
       (julianday('now') - 2440587.5) * 86400.0 - min(enqueued_at), task
FROM next
LEFT JOIN rota_queue ON rota_queue.name = next.queue
WHERE enqueued_at IS NOT NULL
GROUP BY next.queue, priority, task
ORDER BY next.queue, priority, task;
