-- The next results of a node's jobs, in the order of their ids.
SELECT job, value FROM rota_flow_result
WHERE node = :node AND job > :after
ORDER BY job LIMIT :size;
