-- Whether these queues have something to claim (lanes of other tasks than these are left out),
-- wherever it lies: in holes, in any segment of the log, in key lanes.
-- Locks nothing and writes nothing. Walks what claim_probe.sql walks, to its first hit.
SELECT EXISTS (
    SELECT FROM rota.lane
    JOIN rota.queue ON queue.name = lane.queue
    CROSS JOIN LATERAL (
        SELECT place.xid, place.id, place.hole_xids, place.hole_ids
        FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    WHERE lane.queue = ANY (%(queues)s::text[]) AND NOT lane.of_key AND NOT queue.paused
      AND (coalesce((
            SELECT true FROM rota.log AS job
            WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
            ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
        OR coalesce((
            SELECT true
            FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job
                WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id LIMIT 1
            ) AS job
            LIMIT 1), false)
        OR (EXISTS (SELECT FROM rota.lane AS keyed
                    WHERE keyed.queue = lane.queue AND keyed.priority = lane.priority
                      AND keyed.of_key)
            AND EXISTS (SELECT FROM rota.lane_ready AS ready
                        WHERE ready.queue = lane.queue AND ready.priority = lane.priority
                          AND ready.lane <> ALL (ARRAY(
                              SELECT id FROM rota.lane
                              WHERE task IS NOT NULL AND task <> ALL (%(tasks)s::text[])))))))
