-- The limits whose jobs are held, have started within the window, or wait; up to `size`, by their
-- keys, which come after `after`.
-- Locks nothing. Walks: rota_job_held, rota_limit_start, and one probe of rota_job_keyed for each
-- lane.
WITH held (limit_id, jobs) AS MATERIALIZED (
    SELECT rota_lane.limit_id, count(*)
    FROM rota_job INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = rota_job.lane
    WHERE rota_job.session IS NOT NULL AND rota_job.lane IS NOT NULL
    GROUP BY rota_lane.limit_id
), started (limit_id, jobs) AS MATERIALIZED (
    SELECT start.limit_id, sum(start.jobs)
    FROM rota_limit_start AS start
    CROSS JOIN rota_limit ON rota_limit.id = start.limit_id
    WHERE start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds
    GROUP BY start.limit_id
), waiting (limit_id) AS MATERIALIZED (
    SELECT DISTINCT limit_id FROM rota_lane
    WHERE limit_id <> 0 AND EXISTS (
        SELECT 1 FROM rota_job
        WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id)
)
SELECT rota_limit.key, rota_limit.running, coalesce(held.jobs, 0), rota_limit.rate_count,
       rota_limit.rate_seconds, coalesce(started.jobs, 0), waiting.limit_id IS NOT NULL
FROM rota_limit
LEFT JOIN held ON held.limit_id = rota_limit.id
LEFT JOIN started ON started.limit_id = rota_limit.id
LEFT JOIN waiting ON waiting.limit_id = rota_limit.id
WHERE rota_limit.key > :after AND (held.jobs > 0 OR started.jobs > 0 OR waiting.limit_id IS NOT NULL)
ORDER BY rota_limit.key LIMIT :size;
