-- The jobs of a node that were discarded or cancelled; `anew`: all that have ended.
SELECT job.id
FROM rota_flow_node AS node
JOIN rota_job AS job ON job.id BETWEEN node.first_job AND node.last_job
WHERE node.id = :node AND (job.state IN ('discarded', 'cancelled') OR (:anew AND job.state = 'completed')) AND job.headers IS NOT NULL
  AND json_extract(job.headers, '$."rota.node"') = CAST(node.id AS TEXT)
  AND (job.keep_until IS NULL OR job.keep_until > (julianday('now') - 2440587.5) * 86400.0)
ORDER BY job.id;
