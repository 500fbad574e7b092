-- The newest flows. With a state among the newest 10,000 below `before` (or all of that name).
SELECT flow.id, flow.name, coalesce(ended.outcome, 'running'), flow.created_at, flow.deadline, ended.at, ended.reason,
       CASE WHEN ended.flow IS NULL THEN stop.reason END, flow.round,
       (SELECT count(*) FROM (SELECT 1 FROM rota_flow_node AS node WHERE node.flow = flow.id LIMIT 1001))
FROM (
    SELECT * FROM rota_flow
    WHERE id < :before AND (:name IS NULL OR name = :name)
    ORDER BY id DESC LIMIT CASE WHEN :state IS NULL THEN :size ELSE 10000 END
) AS flow
LEFT JOIN rota_flow_end AS ended ON ended.flow = flow.id AND ended.round = flow.round
LEFT JOIN rota_flow_stop AS stop ON stop.flow = flow.id AND stop.since <= (julianday('now') - 2440587.5) * 86400.0
WHERE :state IS NULL OR coalesce(ended.outcome, 'running') = :state
ORDER BY flow.id DESC LIMIT :size;
