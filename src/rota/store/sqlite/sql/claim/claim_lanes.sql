-- The lanes of a queue that have available jobs and a limit with places, or no limit; the first
-- priority first, then those that were served longest ago. Lanes of tasks that are not among
-- `tasks` (a JSON array; null: all are) are left out. With each the limit, its places (null: no
-- limit), its rate's seconds and its key.
-- Locks nothing; exact in the transaction of a claim. Walks: rota_lane_order until it has enough,
-- rota_job_keyed down to its first entry per lane, rota_job_held as a whole, which has what the
-- workers hold, and rota_limit_start_order over a limit's window.
WITH held (limit_id, jobs) AS MATERIALIZED (
    SELECT rota_lane.limit_id, count(*)
    FROM rota_job INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = rota_job.lane
    WHERE rota_job.session IS NOT NULL AND rota_job.lane IS NOT NULL
    GROUP BY rota_lane.limit_id
), place (priority, served, lane, limit_id, running, rate, seconds, key) AS (
    SELECT lane.priority, lane.served, lane.id, lane.limit_id,
           rota_limit.running - coalesce(
               (SELECT jobs FROM held WHERE held.limit_id = lane.limit_id), 0),
           rota_limit.rate_count - coalesce(
               (SELECT sum(jobs) FROM rota_limit_start AS start
                WHERE start.limit_id = lane.limit_id
                  AND start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds), 0),
           rota_limit.rate_seconds, rota_limit.key
    FROM rota_lane AS lane INDEXED BY rota_lane_order
    LEFT JOIN rota_limit ON rota_limit.id = lane.limit_id
    WHERE lane.queue = :queue
      AND (lane.task IS NULL OR :tasks IS NULL OR lane.task IN (SELECT value FROM json_each(:tasks)))
      AND EXISTS (SELECT 1 FROM rota_job
                  WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = lane.id)
    ORDER BY lane.priority, lane.served, lane.id
)
SELECT priority, served, lane, limit_id, min(coalesce(running, rate), coalesce(rate, running)), seconds,
       key
FROM place
WHERE coalesce(running > 0, true) AND coalesce(rate > 0, true)
LIMIT :size;
