-- Which of these queues have available jobs, or key lanes, and are not paused; whether there are
-- key lanes. Locks nothing.
-- Walks: rota_queue by its primary key, rota_job_available and rota_lane_order down to their first
-- entries per queue.
SELECT wanted.value, EXISTS (SELECT 1 FROM rota_lane WHERE queue = wanted.value) AS keyed
FROM json_each(:queues) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM rota_queue WHERE name = wanted.value AND paused)
  AND (keyed OR EXISTS (SELECT 1 FROM rota_job
                        WHERE state = 'available' AND lane IS NULL AND queue = wanted.value));
