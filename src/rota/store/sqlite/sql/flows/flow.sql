-- One flow.
SELECT flow.id, flow.name, coalesce(ended.outcome, 'running'), flow.created_at, flow.deadline, ended.at, ended.reason,
       CASE WHEN ended.flow IS NULL THEN stop.reason END, flow.round,
       (SELECT count(*) FROM (SELECT 1 FROM rota_flow_node AS node WHERE node.flow = flow.id LIMIT 1001))
FROM rota_flow AS flow
LEFT JOIN rota_flow_end AS ended ON ended.flow = flow.id AND ended.round = flow.round
LEFT JOIN rota_flow_stop AS stop ON stop.flow = flow.id AND stop.since <= (julianday('now') - 2440587.5) * 86400.0
WHERE flow.id = :flow;
