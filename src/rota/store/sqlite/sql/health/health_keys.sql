-- How many keys of each queue have available jobs. Locks nothing. Walks rota_lane_order, and
-- rota_job_keyed down to the first entry of each lane.
SELECT queue, count(*) FROM rota_lane
WHERE EXISTS (SELECT 1 FROM rota_job
              WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id)
GROUP BY queue ORDER BY queue;
