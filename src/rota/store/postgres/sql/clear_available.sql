-- The ids of the next available jobs of a queue, and their lanes. Locks nothing.
-- Walks: log_job, from where the last batch ended, past what was claimed and is still in the segments.
-- Walked by the cursor instead, each batch would begin with the dead rows of all the earlier ones.
WITH place AS MATERIALIZED (
    SELECT lane.id AS lane, place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.lane
    CROSS JOIN LATERAL (
        SELECT place.xid, place.id, place.hole_xids, place.hole_ids
        FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    WHERE lane.queue = %(queue)s
)
SELECT job.id, job.lane
FROM rota.log AS job
JOIN place ON place.lane = job.lane
WHERE job.id > %(after)s::int8 AND job.id <= %(until)s::int8
  AND ((job.xid, job.id) > (place.xid, place.id)
    OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)])
ORDER BY job.id LIMIT %(size)s::int8
