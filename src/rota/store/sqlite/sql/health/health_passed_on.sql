-- Jobs that wait in lanes of single tasks (see pass_on.sql): for each queue and task how many, up
-- to `most` of each lane, how long ago the first was enqueued, and the sessions (a JSON array) that
-- know the task, or do not say so.
-- Locks nothing. Walks: rota_lane, rota_job_keyed from each lane's first entry on, and
-- rota_session_alive.
SELECT queue, task, min(sum(jobs), :most), (julianday('now') - 2440587.5) * 86400.0 - min(first), (
    SELECT json_group_array(session.id) FROM rota_session AS session INDEXED BY rota_session_alive
    WHERE session.ended_at IS NULL AND (session.tasks IS NULL OR EXISTS (
        SELECT 1 FROM json_each(session.tasks) AS known WHERE known.value = waiting.task)))
FROM (
    SELECT queue, task,
           (SELECT count(*) FROM (
                SELECT 1 FROM rota_job
                WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id
                LIMIT :most)) AS jobs,
           (SELECT enqueued_at FROM rota_job
            WHERE state = 'available' AND lane IS NOT NULL AND rota_job.lane = rota_lane.id
            ORDER BY id LIMIT 1) AS first
    FROM rota_lane
    WHERE task IS NOT NULL
) AS waiting
WHERE jobs > 0
GROUP BY queue, task
ORDER BY queue, task;
