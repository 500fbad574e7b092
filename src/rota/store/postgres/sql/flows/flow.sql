-- One flow.
SELECT flow.id, flow.name, coalesce(ended.outcome, 'running'), flow.created_at, flow.deadline, ended.at, ended.reason,
       CASE WHEN ended.flow IS NULL THEN stop.reason END, flow.round,
       (SELECT count(*) FROM (SELECT FROM rota.flow_node AS node WHERE node.flow = flow.id LIMIT 1001) AS node)
FROM rota.flow
LEFT JOIN rota.flow_end AS ended ON ended.flow = flow.id AND ended.round = flow.round
LEFT JOIN rota.flow_stop AS stop ON stop.flow = flow.id AND stop.since <= clock_timestamp()
WHERE flow.id = %(flow)s::int8
