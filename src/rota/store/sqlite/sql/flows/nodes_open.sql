-- Those of these nodes (a JSON array of ids) that are there and have not ended.
SELECT node.id FROM rota_flow_node AS node
WHERE node.id IN (SELECT value FROM json_each(:nodes)) AND NOT EXISTS (
    SELECT 1 FROM rota_flow_fact AS fact
    WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended');
