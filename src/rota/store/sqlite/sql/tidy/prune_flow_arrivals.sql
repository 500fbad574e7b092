-- Remove what is known of the nodes of these flows (a JSON array of ids): rota_flow_arrival.
DELETE FROM rota_flow_arrival WHERE node IN (
    SELECT node.id FROM rota_flow_node AS node WHERE node.flow IN (SELECT value FROM json_each(:flows)));
