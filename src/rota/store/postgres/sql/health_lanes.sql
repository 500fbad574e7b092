-- Each lane, and how long ago the job that is next in it was enqueued: one probe of log_order past
-- the lane's cursor, and one for each hole that has ended. Counts nothing.
SELECT lane.queue, lane.priority, queue.paused,
       extract(epoch FROM clock_timestamp() - least((
           SELECT job.enqueued_at FROM rota.log AS job
           WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
           ORDER BY job.lane, job.xid, job.id LIMIT 1
       ), (
           SELECT min(late.enqueued_at)
           FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
           CROSS JOIN LATERAL (
               SELECT job.enqueued_at FROM rota.log AS job
               WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id
               ORDER BY job.lane, job.xid, job.id LIMIT 1
           ) AS late
       )))::float8
FROM rota.lane
JOIN rota.queue ON queue.name = lane.queue
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = lane.id
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
ORDER BY lane.queue, lane.priority
