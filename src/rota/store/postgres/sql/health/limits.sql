-- The limits whose jobs are held, have started within the window, or wait; up to `size`, by their
-- keys, which come after `after`.
-- Locks nothing. Walks what the view lane_used walks, with one probe of log_order past the cursor
-- of each lane, and one for each of its holes; the leases; and the starts, which are those of the
-- last hour or so.
WITH held AS (
    SELECT one.limit_id, count(*) AS jobs
    FROM rota.lease CROSS JOIN LATERAL unnest(lease.limits) AS one (limit_id)
    WHERE lease.limits IS NOT NULL
    GROUP BY one.limit_id
), started AS (
    SELECT start.limit_id, sum(start.jobs) AS jobs
    FROM rota.limit_start AS start
    JOIN rota.limit_key ON limit_key.id = start.limit_id
    WHERE start.at > clock_timestamp() - make_interval(secs => limit_key.rate_seconds::float8)
    GROUP BY start.limit_id
), waiting AS (
    SELECT DISTINCT lane.limit_id
    FROM rota.lane_used AS used
    CROSS JOIN LATERAL (SELECT limit_id FROM rota.lane WHERE lane.id = used.id LIMIT 1) AS lane
    CROSS JOIN LATERAL (SELECT * FROM rota.lane_place WHERE lane_place.lane = used.id LIMIT 1) AS place
    WHERE used.of_key AND lane.limit_id <> 0 AND (coalesce((
            SELECT true FROM rota.log AS job
            WHERE job.lane = used.id AND (job.xid, job.id) > (place.xid, place.id)
            ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
        OR coalesce((
            SELECT true
            FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
            CROSS JOIN LATERAL (
                SELECT FROM rota.log AS job
                WHERE job.lane = used.id AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
            LIMIT 1), false))
)
SELECT limit_key.key, limit_key.running, coalesce(held.jobs, 0)::int8, limit_key.rate_count,
       limit_key.rate_seconds::float8, coalesce(started.jobs, 0)::int8, waiting.limit_id IS NOT NULL
FROM rota.limit_key
LEFT JOIN held ON held.limit_id = limit_key.id
LEFT JOIN started ON started.limit_id = limit_key.id
LEFT JOIN waiting ON waiting.limit_id = limit_key.id
WHERE limit_key.key > %(after)s AND (held.jobs > 0 OR started.jobs > 0 OR waiting.limit_id IS NOT NULL)
ORDER BY limit_key.key LIMIT %(size)s::int8
