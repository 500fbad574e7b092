-- Each queue and priority that may have jobs in the log, jobs that were passed on apart by their
-- tasks, and how long ago the job that is next in it was enqueued: one probe of log_order past each
-- lane's cursor, and one for each hole that has ended. Counts no jobs, and does not walk idle lanes
-- where there are many. Key lanes are left out where their limit has no place: their jobs wait for
-- something else than a worker. (The view lane_ready would probe each of the others twice.)
SELECT lane.queue, lane.priority, queue.paused,
       extract(epoch FROM clock_timestamp() - min(next.enqueued_at))::float8, lane.task
FROM (
    SELECT lane.queue, lane.priority, NULL AS task, lane.id, place.xid, place.id AS last, place.hole_xids,
           place.hole_ids, false AS of_key
    FROM rota.lane_used AS lane
    CROSS JOIN LATERAL (
        SELECT place.xid, place.id, place.hole_xids, place.hole_ids
        FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    WHERE NOT lane.of_key
    UNION ALL
    SELECT used.queue, used.priority, (SELECT task FROM rota.lane WHERE lane.id = used.id), used.id, place.xid,
           place.id, place.hole_xids, place.hole_ids, true
    FROM rota.lane_used AS used
    CROSS JOIN LATERAL (SELECT * FROM rota.lane_open WHERE lane_open.lane = used.id LIMIT 1) AS place
    WHERE used.of_key
) AS lane
CROSS JOIN LATERAL (SELECT paused FROM rota.queue WHERE name = lane.queue LIMIT 1) AS queue
CROSS JOIN LATERAL (
    SELECT least((
        SELECT job.enqueued_at FROM rota.log AS job
        WHERE job.lane = lane.id AND (job.xid, job.id) > (lane.xid, lane.last)
        ORDER BY job.lane, job.xid, job.id LIMIT 1
    ), (
        SELECT min(late.enqueued_at)
        FROM unnest(lane.hole_xids, lane.hole_ids) AS hole (xid, id)
        CROSS JOIN LATERAL (
            SELECT job.enqueued_at FROM rota.log AS job
            WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id
            ORDER BY job.lane, job.xid, job.id LIMIT 1
        ) AS late
    )) AS enqueued_at
    OFFSET 0  -- once, though it is asked for twice
) AS next
WHERE NOT lane.of_key OR next.enqueued_at IS NOT NULL
GROUP BY lane.queue, lane.priority, queue.paused, lane.task
ORDER BY lane.queue, lane.priority, lane.task
