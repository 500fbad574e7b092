-- To which flows nodes belong, and what they are called. Walks the primary keys.
SELECT node.id, flow.id, flow.name, node.name
FROM rota.flow_node AS node JOIN rota.flow ON flow.id = node.flow
WHERE node.id = ANY (%(nodes)s::int8[])
