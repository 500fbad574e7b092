-- Store edges (a JSON array of [node, after, condition]).
INSERT INTO rota_flow_edge (node, after, condition)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(:edges)
WHERE true
ON CONFLICT DO NOTHING;
