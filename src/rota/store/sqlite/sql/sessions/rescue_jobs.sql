-- Take back what a dead session holds. The attempt is spent and noted. Jobs with a request to cancel are
-- cancelled (and kept for a day), those without another attempt are discarded (and kept as `keeps`, a
-- JSON array of [queue, seconds], says), the others are available again. Gives each job with its new
-- state.
-- Locks: the database. Walks: rota_job_running.
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = CASE WHEN cancel_requested THEN 'cancelled'
                 WHEN attempt >= max_attempts THEN 'discarded'
                 ELSE 'available' END,
    finished_at = CASE WHEN cancel_requested OR attempt >= max_attempts
                       THEN (SELECT now FROM moment) END,
    keep_until = CASE
        WHEN cancel_requested THEN (SELECT kept FROM moment)
        WHEN attempt >= max_attempts THEN (
            SELECT (CAST((now + seconds) / max(seconds / 32.0, 0.001) AS INTEGER) + 1)
                   * max(seconds / 32.0, 0.001)
            FROM moment CROSS JOIN (
                SELECT json_extract(value, '$[1]') AS seconds FROM json_each(:keeps)
                WHERE json_extract(value, '$[0]') = rota_job.queue
            )
        ) END,
    errors = json_insert(coalesce(errors, '[]'), '$[#]', json_object(
        'attempt', attempt, 'at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
        'exception', 'rota.WorkerDied',
        'message', 'the worker ' || :worker || ' died or was cut off during this attempt',
        'traceback', '')),
    lease = NULL, session = NULL, cancel_requested = 0
WHERE session = :session
RETURNING id, queue, state, keep_until;
