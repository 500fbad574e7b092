-- Begin another round of a flow.
UPDATE rota_flow SET round = round + 1 WHERE id = :flow;
