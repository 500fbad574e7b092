-- What has arrived at a node.
SELECT coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(cancelled), 0)
FROM rota_flow_arrival WHERE node = :node;
