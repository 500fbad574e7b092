-- What these nodes (a JSON array of ids) wait for, at most so many edges.
SELECT node, after, condition FROM rota_flow_edge
WHERE node IN (SELECT value FROM json_each(:nodes))
ORDER BY node, after LIMIT :size;
