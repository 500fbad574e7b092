-- Which of these queues have available jobs and are not paused. Locks nothing.
-- Walks: rota_queue by its primary key, rota_job_available down to its first entry per queue.
SELECT wanted.value
FROM json_each(:queues) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM rota_queue WHERE name = wanted.value AND paused)
  AND EXISTS (SELECT 1 FROM rota_job WHERE state = 'available' AND queue = wanted.value);
