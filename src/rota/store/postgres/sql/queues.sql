-- Queues with their counts per state. Reads the ends of the lanes, the leases and the timer; counts
-- the rows that are available or finished, so it grows with them.
WITH counted AS (
    SELECT lane.queue, timer.state, count(*) AS jobs
    FROM rota.timer JOIN rota.lane ON lane.id = timer.lane
    GROUP BY lane.queue, timer.state
    UNION ALL
    SELECT lane.queue, 'running', sum(cardinality(lease.jobs))
    FROM rota.lease JOIN rota.lane ON lane.id = lease.lane
    GROUP BY lane.queue
    UNION ALL
    SELECT lane.queue, 'available', sum(waiting.jobs)
    FROM rota.lane
    CROSS JOIN LATERAL (
        SELECT place.xid, place.id, place.hole_xids, place.hole_ids
        FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM rota.log AS job
        WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
        UNION ALL
        SELECT count(*)
        FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
        JOIN rota.log AS job ON job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id
    ) AS waiting
    GROUP BY lane.queue
    UNION ALL
    SELECT finished.queue, finished.state, count(*)
    FROM rota.finished WHERE finished.keep_until > now()
    GROUP BY finished.queue, finished.state
)
SELECT queue.name, queue.paused, counted.state, counted.jobs::int8
FROM rota.queue
LEFT JOIN counted ON counted.queue = queue.name AND counted.jobs > 0
ORDER BY queue.name, counted.state
