-- Which jobs have these keys (a JSON array), their queues and states, and the nodes of flows that
-- they belong to, if they still exist.
-- Locks nothing. Walks: rota_unique and rota_job by their primary keys.
SELECT held.key, held.job, held.first_at, job.id, job.queue, job.state, job.keep_until,
       CASE WHEN job.headers IS NOT NULL THEN json_extract(job.headers, '$."rota.node"') END
FROM rota_unique AS held
LEFT JOIN rota_job AS job ON job.id = held.job
WHERE held.key IN (SELECT value FROM json_each(:keys)) AND held.task = :task;
