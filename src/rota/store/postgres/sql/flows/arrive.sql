-- Say how many jobs of nodes have ended how, in the transaction that ends them. Nodes whose flow is
-- gone are left out.
-- Locks nothing. Walks the primary key of flow_node.
INSERT INTO rota.flow_arrival (node, completed, failed, cancelled)
SELECT came.node, came.completed, came.failed, came.cancelled
FROM unnest(%(nodes)s::int8[], %(completed)s::int4[], %(failed)s::int4[], %(cancelled)s::int4[])
    AS came (node, completed, failed, cancelled)
WHERE EXISTS (SELECT FROM rota.flow_node WHERE flow_node.id = came.node)
