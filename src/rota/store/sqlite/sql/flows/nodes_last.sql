-- The number of the node that was added last.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'rota_flow_node'), 0);
