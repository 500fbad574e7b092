-- The queues that have available jobs, up to `most` of those without a lane, and up to as many
-- lanes.
-- Locks nothing. Walks: rota_job_available from queue to queue and rota_job_keyed from lane to
-- lane, with one probe for each.
WITH RECURSIVE plain (queue) AS (
    SELECT min(queue) FROM rota_job WHERE state = 'available' AND lane IS NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM rota_job
            WHERE state = 'available' AND lane IS NULL AND rota_job.queue > plain.queue)
    FROM plain WHERE plain.queue IS NOT NULL
    LIMIT :most
), keyed (lane) AS (
    SELECT min(lane) FROM rota_job WHERE state = 'available' AND lane IS NOT NULL
    UNION ALL
    SELECT (SELECT min(lane) FROM rota_job
            WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane > keyed.lane)
    FROM keyed WHERE keyed.lane IS NOT NULL
    LIMIT :most
)
SELECT queue FROM plain WHERE queue IS NOT NULL
UNION ALL
SELECT (SELECT queue FROM rota_lane WHERE id = keyed.lane) FROM keyed WHERE lane IS NOT NULL;
