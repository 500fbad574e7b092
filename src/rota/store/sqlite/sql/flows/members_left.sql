-- The next jobs of a node, by id, that have not ended.
SELECT job.id
FROM rota_flow_node AS node
JOIN rota_job AS job ON job.id > :after AND job.id BETWEEN node.first_job AND node.last_job
WHERE node.id = :node AND job.finished_at IS NULL AND job.headers IS NOT NULL
  AND json_extract(job.headers, '$."rota.node"') = CAST(node.id AS TEXT)
ORDER BY job.id LIMIT :size;
