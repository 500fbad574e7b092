-- Forget that these flows (a JSON array of ids) were to be stopped, where they have ended or are
-- gone.
DELETE FROM rota_flow_stop
WHERE flow IN (SELECT value FROM json_each(:flows)) AND NOT EXISTS (
    SELECT 1 FROM rota_flow AS flow WHERE flow.id = rota_flow_stop.flow AND NOT EXISTS (
        SELECT 1 FROM rota_flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round));
