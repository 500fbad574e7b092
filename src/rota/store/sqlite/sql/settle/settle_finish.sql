-- End jobs that the session still holds under these leases; gives the ids of the ended jobs.
-- `settled` is a JSON array of [job, lease, state, keep in seconds or null, result, error].
-- Locks: the database. Walks: rota_job by its primary key, never by rota_job_running (the + sees
-- to that: a session may hold thousands of jobs).
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0)
UPDATE rota_job
SET state = settled.state,
    finished_at = settled.now,
    keep_until = (CAST((settled.now + settled.keep) / settled.step AS INTEGER) + 1) * settled.step,
    result = settled.result,
    errors = CASE WHEN settled.error IS NULL THEN errors
                  ELSE json_insert(coalesce(errors, '[]'), '$[#]', json(settled.error)) END,
    lease = NULL, session = NULL, cancel_requested = 0
FROM (
    SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS lease,
           json_extract(value, '$[2]') AS state, json_extract(value, '$[3]') AS keep,
           max(json_extract(value, '$[3]') / 32.0, 0.001) AS step,
           json_extract(value, '$[4]') AS result, json_extract(value, '$[5]') AS error, moment.now
    FROM json_each(:settled) CROSS JOIN moment
) AS settled
WHERE rota_job.id = settled.job
  AND +rota_job.lease = settled.lease
  AND +rota_job.session = :session
RETURNING id, queue, state, keep_until;
