-- Up to `size` next jobs of each of these lanes (a JSON array of ids): for each, in this order, a
-- JSON array of ids. Locks nothing. Walks: rota_job_keyed from each lane's first entry on;
-- json_each walks the array from its start.
SELECT (
    SELECT json_group_array(id) FROM (
        SELECT id FROM rota_job
        WHERE state = 'available' AND lane IS NOT NULL AND lane = wanted.value
        ORDER BY id
        LIMIT :size))
FROM json_each(:lanes) AS wanted;
