-- Note when a flow is to be stopped.
INSERT INTO rota_flow_stop (flow, since, next, reason) VALUES (:flow, :since, :since, :reason);
