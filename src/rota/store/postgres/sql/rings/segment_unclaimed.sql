-- Whether a segment of the log still holds jobs that have not been handed out; one probe of
-- log_order per lane and hole.
SELECT EXISTS (
    SELECT FROM rota.lane_used AS lane
    CROSS JOIN LATERAL (
        SELECT * FROM rota.lane_place WHERE lane_place.lane = lane.id LIMIT 1
    ) AS place
    WHERE coalesce((
            SELECT true FROM rota.log AS job
            WHERE job.segment = %(segment)s::int2 AND job.lane = lane.id
              AND (job.xid, job.id) > (place.xid, place.id)
            ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
       OR coalesce((
            SELECT true
            FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job
                WHERE job.segment = %(segment)s::int2 AND job.lane = lane.id
                  AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
            LIMIT 1), false))
