-- The next nodes of a flow that have not ended, behind `after`.
SELECT node.id FROM rota_flow_node AS node
WHERE node.flow = :flow AND node.id > :after AND NOT EXISTS (
    SELECT 1 FROM rota_flow_fact AS fact
    WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended')
ORDER BY node.id LIMIT :size;
