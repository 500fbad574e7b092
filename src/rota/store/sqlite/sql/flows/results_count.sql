-- How many results of a node's jobs there are.
SELECT count(*) FROM rota_flow_result WHERE node = :node;
