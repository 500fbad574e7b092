-- Where a job stands that does not run: how many jobs start before it in its lane, up to `most`;
-- its limit, what is taken of that and by which jobs, up to `holders`; the sessions that know its
-- task, or do not say which they know.
-- No row: it neither waits for its time nor is in the log. Jobs of transactions that ended late are
-- not counted.
-- Locks nothing. Walks: timer's primary key, log_job, log_order from the lane's cursor on,
-- limit_start_order over the limit's window, and all leases, which are few.
WITH job AS MATERIALIZED (
    SELECT * FROM (
        (SELECT lane, '0'::xid8 AS xid, id, task, 1 AS source FROM rota.timer
         WHERE id = %(job)s::int8 LIMIT 1)
        UNION ALL
        (SELECT lane, xid, id, task, 2 FROM rota.log
         WHERE id = %(job)s::int8 ORDER BY id DESC, entry DESC LIMIT 1)
    ) AS place
    ORDER BY source LIMIT 1
), held AS MATERIALIZED (
    SELECT one.job
    FROM rota.lease CROSS JOIN LATERAL unnest(lease.jobs, lease.limits) AS one (job, limit_id)
    WHERE lease.limits IS NOT NULL
      AND one.limit_id = (SELECT limit_id FROM rota.lane WHERE id = (SELECT lane FROM job))
      AND one.limit_id <> 0
)
SELECT (SELECT count(*) FROM (
            SELECT FROM rota.log AS before
            WHERE before.lane = job.lane AND (before.xid, before.id) > (place.xid, place.id)
              AND (before.xid, before.id) < (job.xid, job.id)
            LIMIT %(most)s::int8) AS before),
       lane.of_key,
       ARRAY(SELECT id FROM rota.session
             WHERE session.tasks IS NULL OR job.task = ANY (session.tasks) ORDER BY id),
       limit_key.key, limit_key.running, (SELECT count(*) FROM held), limit_key.rate_count,
       limit_key.rate_seconds::float8,
       (SELECT coalesce(sum(start.jobs), 0)::int8 FROM rota.limit_start AS start
        WHERE start.limit_id = lane.limit_id
          AND start.at > clock_timestamp() - make_interval(secs => limit_key.rate_seconds::float8)),
       ARRAY(SELECT held.job FROM held ORDER BY held.job LIMIT %(holders)s::int8)
FROM job
JOIN rota.lane ON lane.id = job.lane
LEFT JOIN rota.limit_key ON limit_key.id = lane.limit_id
LEFT JOIN LATERAL (
    SELECT lane_place.xid, lane_place.id FROM rota.lane_place WHERE lane_place.lane = job.lane LIMIT 1
) AS place ON true
