-- Remove what is known of these flows (a JSON array of ids): rota_flow_stop.
DELETE FROM rota_flow_stop WHERE flow IN (SELECT value FROM json_each(:flows));
