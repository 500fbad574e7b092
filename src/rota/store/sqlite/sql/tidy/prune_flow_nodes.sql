-- Remove what is known of these flows (a JSON array of ids): rota_flow_node.
DELETE FROM rota_flow_node WHERE flow IN (SELECT value FROM json_each(:flows));
