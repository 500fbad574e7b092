-- Cancel those of these jobs (a JSON array of ids) that have not started. They are kept as long as
-- is set for their queue, else as `keeps` (a JSON array of [queue, seconds]) says, else a day; a
-- minute at the least, so that the user who cancels can see them; rounded up. Gives them as they
-- are now.
-- `only`: if they are in this state.
-- Locks: the database. Walks: rota_job by its primary key, and rota_unique_job.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_job
SET state = 'cancelled', scheduled_at = NULL,
    while_waiting = (SELECT while_waiting FROM rota_unique WHERE job = rota_job.id AND while_waiting),
    finished_at = (SELECT now FROM moment),
    keep_until = (
        SELECT (CAST((now + seconds) / (seconds / 32.0) AS INTEGER) + 1) * (seconds / 32.0)
        FROM moment CROSS JOIN (
            SELECT max(60.0, coalesce(
                (SELECT cancelled FROM rota_queue_setting AS said WHERE said.queue = rota_job.queue),
                (SELECT json_extract(value, '$[1]') FROM json_each(:keeps)
                 WHERE json_extract(value, '$[0]') = rota_job.queue),
                86400.0)) AS seconds
        )
    )
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +state IN ('scheduled', 'available', 'retryable')
  AND (:only IS NULL OR +state = :only)
RETURNING id, queue, state, keep_until, json_extract(headers, '$."rota.node"');
