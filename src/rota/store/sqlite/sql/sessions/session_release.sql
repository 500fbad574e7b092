-- Give back what a session still holds, but the leases in `held` (a JSON list), without spending an
-- attempt; jobs with a request to cancel are cancelled and kept for a day.
-- Locks: the database. Walks: rota_job_running.
WITH moment (now, kept) AS (
    SELECT now, (CAST((now + 86400.0) / 2700.0 AS INTEGER) + 1) * 2700.0
    FROM (SELECT (julianday('now') - 2440587.5) * 86400.0 AS now)
)
UPDATE rota_job
SET state = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'available' END,
    finished_at = CASE WHEN cancel_requested THEN (SELECT now FROM moment) END,
    keep_until = CASE WHEN cancel_requested THEN (SELECT kept FROM moment) END,
    attempt = attempt - 1,
    lease = NULL, session = NULL, cancel_requested = 0
WHERE session = :session AND lease NOT IN (SELECT value FROM json_each(:held))
RETURNING id, queue, state, keep_until, json_extract(headers, '$."rota.node"');
