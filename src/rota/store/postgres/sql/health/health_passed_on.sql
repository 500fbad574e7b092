-- Jobs that wait in lanes of single tasks (see pass_on.sql): for each queue and task how many, up
-- to `most` of each lane, how long ago the first was enqueued, and the sessions that know the task,
-- or do not say so.
-- Locks nothing. Walks: lane_task, and log_order past each lane's cursor, and in the holes that
-- have ended.
SELECT lane.queue, lane.task, least(sum(waiting.jobs), %(most)s::int8)::int8,
       extract(epoch FROM clock_timestamp() - min(waiting.first))::float8,
       ARRAY(SELECT session.id FROM rota.session
             WHERE session.tasks IS NULL OR lane.task = ANY (session.tasks) ORDER BY session.id)
FROM rota.lane
CROSS JOIN LATERAL (SELECT * FROM rota.lane_place WHERE lane_place.lane = lane.id LIMIT 1) AS place
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(job.enqueued_at) AS first
    FROM (
        (SELECT job.enqueued_at FROM rota.log AS job
         WHERE job.lane = lane.id AND (job.xid, job.id) > (place.xid, place.id)
         ORDER BY job.lane, job.xid, job.id LIMIT %(most)s::int8)
        UNION ALL
        (SELECT job.enqueued_at
         FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
         CROSS JOIN LATERAL (
             SELECT job.enqueued_at FROM rota.log AS job
             WHERE job.lane = lane.id AND job.xid = hole.xid AND job.id > hole.id
             ORDER BY job.lane, job.xid, job.id LIMIT %(most)s::int8
         ) AS job)
    ) AS job
) AS waiting
WHERE lane.task IS NOT NULL AND waiting.jobs > 0
GROUP BY lane.queue, lane.task
ORDER BY lane.queue, lane.task
