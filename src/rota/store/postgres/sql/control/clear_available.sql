-- The ids of the next available jobs of a queue, and their lanes. Locks nothing.
-- Walks: log_job, from where the last batch ended, past what was claimed and is still in the
-- segments.
-- If it walked from the cursor, each batch would begin with the dead rows of all earlier batches.
SELECT job.id, job.lane
FROM rota.log AS job
JOIN rota.lane ON lane.id = job.lane AND lane.queue = %(queue)s
CROSS JOIN LATERAL (
    SELECT * FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
) AS place
WHERE job.id > %(after)s::int8 AND job.id <= %(until)s::int8
  AND ((job.xid, job.id) > (place.xid, place.id)
    OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
ORDER BY job.id LIMIT %(size)s::int8
