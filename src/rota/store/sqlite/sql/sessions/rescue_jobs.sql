-- Take back these jobs (a JSON array of ids) of a dead session. Its death is noted with how many
-- `suspects` it leaves; `spent` is 1 where the attempt is. Jobs with a request to cancel are
-- cancelled (and kept for a day), those without another attempt are discarded (and kept as `keeps`,
-- a JSON array of [queue, seconds], says), the others are available again. Gives each job with its
-- new state.
-- Locks: the database. Walks: rota_job by its primary key.
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = CASE WHEN cancel_requested THEN 'cancelled'
                 WHEN :spent AND attempt >= max_attempts THEN 'discarded'
                 ELSE 'available' END,
    finished_at = CASE WHEN cancel_requested OR (:spent AND attempt >= max_attempts)
                       THEN (SELECT now FROM moment) END,
    keep_until = CASE
        WHEN cancel_requested THEN (SELECT kept FROM moment)
        WHEN :spent AND attempt >= max_attempts THEN (
            SELECT (CAST((now + seconds) / max(seconds / 32.0, 0.001) AS INTEGER) + 1)
                   * max(seconds / 32.0, 0.001)
            FROM moment CROSS JOIN (
                SELECT json_extract(value, '$[1]') AS seconds FROM json_each(:keeps)
                WHERE json_extract(value, '$[0]') = rota_job.queue
            )
        ) END,
    errors = json_insert(coalesce(errors, '[]'), '$[#]', json_object(
        'attempt', attempt, 'at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
        'exception', 'rota.WorkerDied', 'message', :message, 'traceback', '',
        'suspects', :suspects)),
    attempt = attempt - NOT :spent,
    lease = NULL, session = NULL, cancel_requested = 0
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +session = :session
RETURNING id, queue, state, keep_until, json_extract(headers, '$."rota.node"');
