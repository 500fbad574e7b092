-- Tasks whose jobs lost their worker within the last hour, among the 1,000 newest finished jobs and
-- up to 1,000 that run: a rescue leaves its mark in a job's errors and nowhere else. Walks
-- finished_job backwards, and log_job for what is leased.
WITH seen AS (
    (SELECT task, errors FROM rota.finished ORDER BY id DESC LIMIT 1000)
    UNION ALL
    (SELECT job.task, job.errors
     FROM rota.lease
     CROSS JOIN LATERAL unnest(lease.jobs) AS held (id)
     CROSS JOIN LATERAL (
         SELECT entry.task, entry.errors FROM rota.log AS entry WHERE entry.id = held.id
         ORDER BY entry.id DESC, entry.entry DESC LIMIT 1
     ) AS job
     LIMIT 1000)
)
SELECT task, count(*), min(extract(epoch FROM clock_timestamp()
                                  - (errors -> -1 ->> 'at')::timestamptz))::float8
FROM seen
WHERE errors -> -1 ->> 'exception' = 'rota.WorkerDied'
  AND (errors -> -1 ->> 'at')::timestamptz > clock_timestamp() - interval '1 hour'
GROUP BY task
ORDER BY count(*) DESC
LIMIT 20
