-- The flow of a node.
SELECT flow FROM rota.flow_node WHERE id = %(node)s::int8
