-- The next jobs of a lane. Locks nothing. Walks: rota_job_keyed from the lane's first entry on.
SELECT id FROM rota_job
WHERE state = 'available' AND lane IS NOT NULL AND lane = :lane
ORDER BY id
LIMIT :size;
