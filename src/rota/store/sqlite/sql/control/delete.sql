-- Remove those of these jobs (a JSON array of ids) that are not running; gives them as they were.
-- The last column is the node of a flow that a job belongs to.
-- `only`: if they are in this state.
-- Locks: the database. Walks: rota_job by its primary key.
DELETE FROM rota_job
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +state <> 'running'
  AND (:only IS NULL OR +state = :only)
RETURNING id, queue, state, keep_until, json_extract(headers, '$."rota.node"');
