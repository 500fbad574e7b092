-- Take the keys of finished jobs (a JSON array of ids) for them again, where the keys are free or
-- still theirs; of two jobs with one key the newer gets it: the columns beside max() are its own.
-- `only`: if they are in this state.
-- Locks: the database. Walks: rota_job and rota_unique by their primary keys.
-- It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_unique (key, task, job, first_at, while_waiting)
SELECT unique_key, task, max(id), (julianday('now') - 2440587.5) * 86400.0, coalesce(while_waiting, 0)
FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +unique_key IS NOT NULL
  AND +finished_at IS NOT NULL AND (:only IS NULL OR +state = :only)
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0)
GROUP BY unique_key, task
ON CONFLICT (key, task) DO UPDATE SET ended = 0 WHERE job = excluded.job;
