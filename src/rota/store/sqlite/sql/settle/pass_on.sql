-- Put these jobs (a JSON array of ids) into the lanes of their tasks, from which only workers claim
-- that know the task. Locks: the database. Walks: rota_job and rota_lane by their primary keys, and
-- the unique key of lanes.
UPDATE rota_job SET lane = own.id
FROM json_each(:jobs) AS back
CROSS JOIN rota_job AS job ON job.id = back.value
LEFT JOIN rota_lane AS lane ON lane.id = job.lane
CROSS JOIN rota_lane AS own
   ON own.queue = job.queue AND own.priority = job.priority AND own.limit_id = coalesce(lane.limit_id, 0)
  AND own.fair = char(1) || job.task || char(1) || coalesce(lane.fair, '')
WHERE rota_job.id = back.value AND lane.task IS NOT job.task;
