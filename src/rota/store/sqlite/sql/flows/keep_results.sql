-- Keep the results of jobs that others are given (a JSON array of [node, job, text]). Nodes whose
-- flow is gone are left out.
INSERT INTO rota_flow_result (node, job, value)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(:given)
WHERE EXISTS (SELECT 1 FROM rota_flow_node AS node WHERE node.id = json_extract(value, '$[0]'))
ON CONFLICT (node, job) DO UPDATE SET value = excluded.value;
