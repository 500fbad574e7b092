-- The lanes that have available jobs, up to `most` of them. Locks nothing. Walks: rota_job_keyed
-- from lane to lane, with one probe for each.
WITH RECURSIVE used (lane) AS (
    SELECT min(lane) FROM rota_job WHERE state = 'available' AND lane IS NOT NULL
    UNION ALL
    SELECT (SELECT min(lane) FROM rota_job
            WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane > used.lane)
    FROM used WHERE used.lane IS NOT NULL
    LIMIT :most
)
SELECT lane FROM used WHERE lane IS NOT NULL;
