-- Let jobs that the session still holds under these leases wait for another run; gives their ids. A
-- job with a request to cancel is cancelled instead and kept for a day.
-- `settled` is a JSON array of [job, lease, state, delay in seconds, attempts given back, error,
-- whether it ran: then it is no suspect any more].
-- Locks: the database. Walks: rota_job by its primary key, see settle_finish.sql.
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = CASE WHEN cancel_requested THEN 'cancelled' ELSE settled.state END,
    scheduled_at = CASE WHEN NOT cancel_requested AND settled.state <> 'available'
                        THEN settled.now + settled.delay END,
    finished_at = CASE WHEN cancel_requested THEN settled.now END,
    keep_until = CASE WHEN cancel_requested THEN settled.kept END,
    attempt = attempt - settled.unspent,
    errors = CASE WHEN settled.error IS NULL AND settled.ran THEN json_remove(errors, '$[#-1].suspects')
                  WHEN settled.error IS NULL THEN errors
                  ELSE json_insert(coalesce(errors, '[]'), '$[#]', json(settled.error)) END,
    lease = NULL, session = NULL, cancel_requested = 0
FROM (
    SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS lease,
           json_extract(value, '$[2]') AS state, json_extract(value, '$[3]') AS delay,
           json_extract(value, '$[4]') AS unspent, json_extract(value, '$[5]') AS error,
           json_extract(value, '$[6]') AS ran, moment.*
    FROM json_each(:settled) CROSS JOIN moment
) AS settled
WHERE rota_job.id = settled.job
  AND +rota_job.lease = settled.lease
  AND +rota_job.session = :session
RETURNING id, queue, state, keep_until;
