-- What these nodes wait for, at most so many edges. Walks flow_edge's primary key.
SELECT edge.node, edge.after, edge.condition
FROM (SELECT unnest(%(nodes)s::int8[])) AS node (id)
CROSS JOIN LATERAL (
    SELECT * FROM rota.flow_edge WHERE flow_edge.node = node.id
    ORDER BY flow_edge.node, flow_edge.after LIMIT %(size)s::int8
) AS edge
ORDER BY edge.node, edge.after LIMIT %(size)s::int8
