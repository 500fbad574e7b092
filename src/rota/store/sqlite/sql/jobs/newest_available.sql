-- The newest available job up to `until` (of a queue; null means any); null: there is none. Locks
-- nothing.
-- Walks: rota_count and rota_queue, by which queues are known; rota_job_available with two probes
-- for each queue and priority; rota_lane and rota_job_keyed with one probe for each lane.
WITH RECURSIVE known (name) AS (
    SELECT name FROM rota_queue WHERE :queue IS NULL OR name = :queue
    UNION SELECT queue FROM rota_count WHERE :queue IS NULL OR queue = :queue
), place (queue, priority) AS (
    SELECT known.name, (SELECT min(priority) FROM rota_job
                        WHERE state = 'available' AND lane IS NULL AND queue = known.name)
    FROM known
    UNION ALL
    SELECT queue, (SELECT min(priority) FROM rota_job
                   WHERE state = 'available' AND lane IS NULL AND queue = place.queue
                     AND priority > place.priority)
    FROM place WHERE priority IS NOT NULL
)
SELECT max(id) FROM (
    SELECT (SELECT id FROM rota_job
            WHERE state = 'available' AND lane IS NULL AND rota_job.queue = place.queue
              AND rota_job.priority = place.priority AND id <= :until
            ORDER BY id DESC LIMIT 1) AS id
    FROM place WHERE priority IS NOT NULL
    UNION ALL
    SELECT (SELECT id FROM rota_job
            WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id AND id <= :until
            ORDER BY id DESC LIMIT 1)
    FROM rota_lane WHERE :queue IS NULL OR queue = :queue
);
