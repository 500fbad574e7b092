-- The plain lanes of these queues, in the order of a claim, and whether there is something to
-- claim: in the lane; in the key lanes beside it (null: there are none, or none but idle ones of
-- single tasks). Lanes of other tasks than these are left out (null: of none).
-- Locks nothing and writes nothing: a lane with nothing new costs a probe of cursor_order's right
-- end, one of log_order past the cursor, and one of log_order per hole that has ended.
SELECT lane.id,
       coalesce((
           SELECT true FROM rota.log AS job
           WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
           ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
       OR coalesce((
           SELECT true
           FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
           CROSS JOIN LATERAL (
               SELECT FROM rota.log AS job
               WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
           LIMIT 1), false),
       lane.priority,
       CASE WHEN EXISTS (SELECT FROM rota.lane AS keyed
                         WHERE keyed.queue = lane.queue AND keyed.priority = lane.priority
                           AND keyed.of_key)
            THEN (
                SELECT CASE WHEN keys.ready OR EXISTS (
                                SELECT FROM rota.lane AS keyed
                                WHERE keyed.queue = lane.queue AND keyed.priority = lane.priority
                                  AND keyed.of_key AND keyed.task IS NULL)
                            THEN keys.ready END
                FROM (SELECT EXISTS (
                          SELECT FROM rota.lane_ready AS ready
                          WHERE ready.queue = lane.queue AND ready.priority = lane.priority
                            AND ready.lane <> ALL (ARRAY(
                                SELECT id FROM rota.lane
                                WHERE task IS NOT NULL AND task <> ALL (%(tasks)s::text[])))) AS ready
                      OFFSET 0) AS keys) END
FROM rota.lane
JOIN rota.queue ON queue.name = lane.queue
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE lane.queue = ANY (%(queues)s::text[]) AND NOT lane.of_key AND NOT queue.paused
ORDER BY lane.priority, array_position(%(queues)s::text[], lane.queue)
