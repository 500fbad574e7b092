-- What waits for a node, and for what.
SELECT node, condition FROM rota_flow_edge WHERE after = :node;
