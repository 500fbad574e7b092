-- enqueue.sql for jobs with keys: `jobs` is a JSON array of [args, unique key or null, lane or
-- null].
INSERT INTO rota_job
       (task, queue, priority, state, max_attempts, timeout, enqueued_at, scheduled_at, args, unique_key,
        lane, headers)
SELECT :task, :queue, :priority, :state, :max_attempts, :timeout, moment.now,
       CASE WHEN :state = 'scheduled' THEN coalesce(:at, moment.now + :delay) END,
       json_extract(job.value, '$[0]'), json_extract(job.value, '$[1]'),
       json_extract(job.value, '$[2]'), :headers
FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
CROSS JOIN json_each(:jobs) AS job
WHERE true
RETURNING id;
