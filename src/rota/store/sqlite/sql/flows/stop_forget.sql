-- Forget that a flow was to be stopped.
DELETE FROM rota_flow_stop WHERE flow = :flow;
