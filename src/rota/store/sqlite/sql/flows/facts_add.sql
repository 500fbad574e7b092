-- Note what was decided of nodes (a JSON array of [node, round, fact, outcome, reason]).
INSERT INTO rota_flow_fact (node, round, fact, at, outcome, reason)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       (julianday('now') - 2440587.5) * 86400.0, json_extract(value, '$[3]'), json_extract(value, '$[4]')
FROM json_each(:facts)
WHERE true
ON CONFLICT DO NOTHING;
