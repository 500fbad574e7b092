-- Make the lanes for jobs (a JSON array of ids) of tasks that a worker does not know: one for each
-- task beside each lane where such a job was met, with the same limit and fair share. The key of
-- such a lane is none that a producer could ask for. Locks: the database. Walks: rota_job and
-- rota_lane by their primary keys.
INSERT INTO rota_lane (queue, priority, limit_id, fair, task)
SELECT DISTINCT job.queue, job.priority, coalesce(lane.limit_id, 0),
       char(1) || job.task || char(1) || coalesce(lane.fair, ''), job.task
FROM json_each(:jobs) AS back
CROSS JOIN rota_job AS job ON job.id = back.value
LEFT JOIN rota_lane AS lane ON lane.id = job.lane
WHERE lane.task IS NOT job.task
ON CONFLICT DO NOTHING;
