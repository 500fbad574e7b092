-- The next available jobs after this id, by priority, then in their order, with the limits of their
-- lanes; not those of paused queues, nor of limits without a place if `limits` says so. `jobs` and
-- `queues` are JSON arrays, or null for any. Locks nothing. Walks: rota_job by its primary key from
-- there on.
WITH held (limit_id, jobs) AS MATERIALIZED (
    SELECT rota_lane.limit_id, count(*)
    FROM rota_job INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = rota_job.lane
    WHERE rota_job.session IS NOT NULL AND rota_job.lane IS NOT NULL
    GROUP BY rota_lane.limit_id
)
SELECT job.id, coalesce(lane.limit_id, 0), rota_limit.rate_count IS NOT NULL
FROM rota_job AS job
LEFT JOIN rota_lane AS lane ON lane.id = job.lane
LEFT JOIN rota_limit ON rota_limit.id = lane.limit_id
WHERE job.id > :after AND +job.state = 'available'
  AND (:jobs IS NULL OR job.id IN (SELECT value FROM json_each(:jobs)))
  AND (:queues IS NULL OR job.queue IN (SELECT value FROM json_each(:queues)))
  AND (:task IS NULL OR job.task = :task)
  AND NOT EXISTS (SELECT 1 FROM rota_queue WHERE name = job.queue AND paused)
  AND (NOT :limits OR (
      coalesce(rota_limit.running > coalesce(
          (SELECT jobs FROM held WHERE held.limit_id = lane.limit_id), 0), true)
      AND coalesce(rota_limit.rate_count > coalesce(
          (SELECT sum(jobs) FROM rota_limit_start AS start
           WHERE start.limit_id = lane.limit_id
             AND start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds), 0),
          true)))
ORDER BY job.priority, job.id
LIMIT :size;
