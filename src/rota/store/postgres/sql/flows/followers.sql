-- What waits for a node, and for what. Walks flow_edge_after.
SELECT node, condition FROM rota.flow_edge WHERE after = %(node)s::int8
