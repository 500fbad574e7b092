-- Forget what has arrived at a node: it was added up.
DELETE FROM rota_flow_arrival WHERE node = :node;
