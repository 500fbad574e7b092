-- Say how many jobs of nodes have ended how (a JSON array of [node, completed, failed, cancelled]).
-- Nodes whose flow is gone are left out.
INSERT INTO rota_flow_arrival (node, completed, failed, cancelled)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]')
FROM json_each(:came)
WHERE EXISTS (SELECT 1 FROM rota_flow_node AS node WHERE node.id = json_extract(value, '$[0]'));
