-- Store one job per element of `args` (a JSON array of JSON texts); gives their ids. What is set
-- for the queue holds where neither the caller nor the task says anything.
-- Locks: the database, like every write to SQLite; hence ids are given in the order of commits, and
-- inside one statement in the order of the array, which json_each walks from its start.
-- It begins with INSERT, not WITH: that is how Python's driver knows, on a caller's connection,
-- that a transaction must be begun.
INSERT INTO rota_job
       (task, queue, priority, state, max_attempts, timeout, enqueued_at, scheduled_at, headers, args)
SELECT :task, :queue, :priority, :state,
       coalesce(:max_attempts, preset.max_attempts, :fallback_attempts),
       coalesce(:timeout, preset.timeout, :fallback_timeout), moment.now,
       CASE WHEN :state = 'scheduled' THEN coalesce(:at, moment.now + :delay) END, :headers, job.value
FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now) AS moment
CROSS JOIN (
    SELECT (SELECT max_attempts FROM rota_queue_setting WHERE queue = :queue) AS max_attempts,
           (SELECT timeout FROM rota_queue_setting WHERE queue = :queue) AS timeout
) AS preset
CROSS JOIN json_each(:args) AS job
WHERE true
RETURNING id;
