-- settle_wait.sql for rounds that ended well: the job comes round again, with all its attempts.
-- Errors of this round are forgotten.
-- `settled` is a JSON array of [job, lease, delay in seconds, moment or null].
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'scheduled' END,
    scheduled_at = CASE WHEN NOT cancel_requested THEN coalesce(settled.at, settled.now + settled.delay) END,
    finished_at = CASE WHEN cancel_requested THEN settled.now END,
    keep_until = CASE WHEN cancel_requested THEN settled.kept END,
    attempt = CASE WHEN cancel_requested THEN attempt ELSE 0 END,
    errors = CASE WHEN cancel_requested THEN errors END,
    iteration = iteration + NOT cancel_requested,
    last_run = CASE WHEN cancel_requested THEN last_run ELSE settled.now END,
    lease = NULL, session = NULL, cancel_requested = 0
FROM (
    SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS lease,
           json_extract(value, '$[2]') AS delay, json_extract(value, '$[3]') AS at, moment.*
    FROM json_each(:settled) CROSS JOIN moment
) AS settled
WHERE rota_job.id = settled.job
  AND +rota_job.lease = settled.lease
  AND +rota_job.session = :session
RETURNING id, queue, state, keep_until;
