-- Make those of these jobs (a JSON array of ids) available that have finished or wait for their
-- time, with all their attempts; their errors stay readable. Finished unique ones only if they have
-- their key again. Jobs that wait for others stay as they are. Gives their ids.
-- `only`: if they are in this state.
-- Locks: the database. Walks: rota_job by its primary key.
UPDATE rota_job
SET state = 'available', attempt = 0, scheduled_at = NULL,
    finished_at = NULL, keep_until = NULL, result = NULL
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND +state IN ('scheduled', 'retryable', 'completed', 'discarded', 'cancelled')
  AND (:only IS NULL OR +state = :only)
  AND (keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0)
  AND (json_extract(headers, '$."rota.node"') IS NULL OR finished_at IS NOT NULL OR coalesce((
      SELECT EXISTS (SELECT 1 FROM rota_flow_fact AS fact
                     WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'released')
      FROM rota_flow_node AS node
      WHERE node.id = CAST(json_extract(headers, '$."rota.node"') AS INTEGER)), 1))
  AND (+unique_key IS NULL OR finished_at IS NULL
       OR EXISTS (SELECT 1 FROM rota_unique WHERE job = rota_job.id AND NOT ended))
RETURNING id, queue;
