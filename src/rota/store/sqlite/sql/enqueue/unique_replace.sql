-- Give these jobs, which have not started, new args, options and time: `jobs` is a JSON array of
-- [job, args, when its key was first enqueued, lane or null]. With `cap` the time is at most so
-- many seconds after that first enqueue. Gives the jobs as they are now.
-- Locks: the database. Walks: rota_job by its primary key.
UPDATE rota_job
SET args = new.args, lane = new.lane, queue = :queue, priority = :priority, state = :state, attempt = 0,
    max_attempts = :max_attempts, timeout = :timeout, errors = NULL, headers = :headers, enqueued_at = new.now,
    scheduled_at = CASE WHEN :state = 'scheduled'
                        THEN min(coalesce(:at, new.now + :delay), coalesce(new.first_at + :cap, 9e999)) END
FROM (
    SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS args,
           json_extract(value, '$[2]') AS first_at, json_extract(value, '$[3]') AS lane, (julianday('now') - 2440587.5) * 86400.0 AS now
    FROM json_each(:jobs)
) AS new
WHERE rota_job.id = new.job AND +rota_job.state IN ('scheduled', 'available', 'retryable')
RETURNING id, queue, state, keep_until;
