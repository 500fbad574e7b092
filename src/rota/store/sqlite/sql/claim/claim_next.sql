-- The next jobs of one queue that have no lane, in the order in which they start: their priorities
-- and their ids, two JSON arrays in one row (see claim_rows.sql). Locks nothing.
-- Walks: rota_job_available from the queue's first entry on; sorts nothing, reads no row.
SELECT json_group_array(priority), json_group_array(id)
FROM (
    SELECT priority, id
    FROM rota_job
    WHERE state = 'available' AND lane IS NULL AND queue = :queue
    ORDER BY priority, id
    LIMIT :size
);
