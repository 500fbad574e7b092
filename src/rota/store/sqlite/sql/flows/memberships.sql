-- To which flows nodes belong, and what they are called.
SELECT node.id, flow.id, flow.name, node.name
FROM rota_flow_node AS node JOIN rota_flow AS flow ON flow.id = node.flow
WHERE node.id IN (SELECT value FROM json_each(:nodes));
