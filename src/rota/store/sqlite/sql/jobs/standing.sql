-- Where a job stands that does not run: how many jobs start before it in its lane, or in its queue
-- and priority, up to `most`; its limit, what is taken of that and by which jobs (a JSON array), up
-- to `holders`; the sessions (a JSON array) that know its task, or do not say which they know. No
-- row: it runs or has ended.
-- Locks nothing. Walks: rota_job's primary key, rota_job_available or rota_job_keyed from the
-- lane's first entry on, rota_job_held, which has what the workers hold, rota_limit_start_order
-- over the limit's window, rota_session_alive.
WITH held (job) AS MATERIALIZED (
    SELECT held.id
    FROM rota_job AS held INDEXED BY rota_job_held
    CROSS JOIN rota_lane ON rota_lane.id = held.lane
    WHERE held.session IS NOT NULL AND held.lane IS NOT NULL AND rota_lane.limit_id <> 0
      AND rota_lane.limit_id = (
          SELECT limit_id FROM rota_lane WHERE id = (SELECT lane FROM rota_job WHERE id = :job))
)
SELECT CASE WHEN job.state <> 'available' THEN 0 WHEN job.lane IS NULL THEN (
           SELECT count(*) FROM (
               SELECT 1 FROM rota_job INDEXED BY rota_job_available
               WHERE state = 'available' AND lane IS NULL AND rota_job.queue = job.queue
                 AND rota_job.priority = job.priority AND rota_job.id < job.id LIMIT :most))
       ELSE (
           SELECT count(*) FROM (
               SELECT 1 FROM rota_job INDEXED BY rota_job_keyed
               WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = job.lane
                 AND rota_job.id < job.id LIMIT :most)) END,
       job.lane IS NOT NULL,
       (SELECT json_group_array(session.id) FROM rota_session AS session INDEXED BY rota_session_alive
        WHERE session.ended_at IS NULL AND (session.tasks IS NULL OR EXISTS (
            SELECT 1 FROM json_each(session.tasks) AS known WHERE known.value = job.task))),
       rota_limit.key, rota_limit.running, (SELECT count(*) FROM held), rota_limit.rate_count,
       rota_limit.rate_seconds,
       coalesce((SELECT sum(start.jobs) FROM rota_limit_start AS start
                 WHERE start.limit_id = rota_limit.id
                   AND start.at > (julianday('now') - 2440587.5) * 86400.0 - rota_limit.rate_seconds), 0),
       (SELECT json_group_array(job) FROM (SELECT job FROM held ORDER BY job LIMIT :holders))
FROM rota_job AS job
LEFT JOIN rota_lane ON rota_lane.id = job.lane
LEFT JOIN rota_limit ON rota_limit.id = rota_lane.limit_id
WHERE job.id = :job AND job.state IN ('available', 'scheduled', 'retryable');
