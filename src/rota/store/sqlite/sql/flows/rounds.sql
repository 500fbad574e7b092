-- Begin another round of these nodes (a JSON array of ids).
UPDATE rota_flow_node SET round = round + 1 WHERE id IN (SELECT value FROM json_each(:nodes));
