-- The flow of a node.
SELECT flow FROM rota_flow_node WHERE id = :node;
