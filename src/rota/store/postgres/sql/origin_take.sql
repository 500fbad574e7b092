-- The available jobs of all lanes in log order, by the other cluster's numbers.
SELECT job.id
FROM rota.log AS job
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = job.lane
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE (job.xid, job.id) > (place.xid, place.id)
   OR job.id > place.hole_ids[array_position(place.hole_xids, job.xid)]
ORDER BY job.xid, job.id
