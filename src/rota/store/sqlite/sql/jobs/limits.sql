-- The limits with keys after `after`, by key: what each allows, how many of its jobs are held, and how many started
-- within its window. Locks nothing. Walks: rota_limit's index of keys, rota_job_held once, which has what the workers
-- hold, and rota_limit_start_order over each window.
WITH held (limit_id, jobs) AS MATERIALIZED (
    SELECT rota_lane.limit_id, count(*)
    FROM rota_job INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = rota_job.lane
    WHERE rota_job.session IS NOT NULL AND rota_job.lane IS NOT NULL
    GROUP BY rota_lane.limit_id
)
SELECT rota_limit.key, rota_limit.running,
       coalesce((SELECT jobs FROM held WHERE held.limit_id = rota_limit.id), 0),
       rota_limit.rate_count, rota_limit.rate_seconds,
       coalesce((SELECT sum(start.jobs) FROM rota_limit_start AS start
                 WHERE start.limit_id = rota_limit.id
                   AND start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds), 0)
FROM rota_limit
WHERE rota_limit.key > :after
ORDER BY rota_limit.key LIMIT :most;
