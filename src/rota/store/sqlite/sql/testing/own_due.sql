-- The jobs after this one that wait for their time, in the order of their times; with `due` only
-- those whose time has come, and none that wait for others. `jobs` and `queues` are JSON arrays, or
-- null for any, and `but` is one. Locks nothing. Walks: rota_job_waiting from its left end.
SELECT id, queue, state
FROM rota_job
WHERE scheduled_at IS NOT NULL AND id > :after
  AND (NOT :due OR scheduled_at <= (julianday('now') - 2440587.5) * 86400.0)
  AND NOT (json_extract(headers, '$."rota.node"') IS NOT NULL
           AND scheduled_at > (julianday('now') - 2440587.5) * 86400.0 + 50 * 31557600.0)
  AND (:jobs IS NULL OR id IN (SELECT value FROM json_each(:jobs)))
  AND id NOT IN (SELECT value FROM json_each(:but))
  AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
  AND (:task IS NULL OR task = :task)
ORDER BY scheduled_at, id;
