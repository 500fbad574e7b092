-- All that is known of those of these jobs that wait, in the order of their ids. Read when they are
-- locked.
-- Of a job that was passed on to those who know its task, the key of its fair share is not known
-- any more.
-- Locks nothing. Walks: timer by its primary key, log_job, unique_key by its primary key.
SELECT job.id, job.task, job.args::text, job.queue, job.priority, job.attempt, job.max_attempts, job.timeout,
       extract(epoch FROM job.enqueued_at)::float8, extract(epoch FROM job.scheduled_at)::float8,
       job.errors::text, job.iteration, extract(epoch FROM job.last_run)::float8, job.headers::text,
       held.key, coalesce(held.while_waiting, false), extract(epoch FROM held.until)::float8,
       extract(epoch FROM held.first_at)::float8,
       limited.key, limited.running, limited.rate_count, limited.rate_seconds,
       CASE WHEN lane.task IS NULL THEN nullif(lane.fair, '') END
FROM rota.job AS job
CROSS JOIN LATERAL (
    SELECT entries.lane
    FROM (SELECT lane, entry FROM rota.timer WHERE timer.id = job.id
          UNION ALL
          SELECT lane, entry FROM rota.log WHERE log.id = job.id) AS entries
    ORDER BY entries.entry DESC LIMIT 1
) AS place
JOIN rota.lane ON lane.id = place.lane
LEFT JOIN rota.limit_key AS limited ON limited.id = lane.limit_id
LEFT JOIN rota.unique_key AS held
  ON held.key = job.unique_key AND held.task = job.task AND held.job = job.id
WHERE job.id = ANY (%(jobs)s::int8[]) AND job.state IN ('scheduled', 'available', 'retryable')
ORDER BY job.id
