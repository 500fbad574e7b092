-- The newest flows. With a name or a state among the newest 10,000 below `before` (or all of that
-- name).
SELECT flow.id, flow.name, coalesce(ended.outcome, 'running'), flow.created_at, flow.deadline, ended.at, ended.reason,
       CASE WHEN ended.flow IS NULL THEN stop.reason END, flow.round,
       (SELECT count(*) FROM (SELECT FROM rota.flow_node AS node WHERE node.flow = flow.id LIMIT 1001) AS node)
FROM (
    SELECT * FROM rota.flow
    WHERE flow.id < %(before)s::int8 AND (%(name)s::text IS NULL OR flow.name = %(name)s)
    ORDER BY flow.id DESC LIMIT CASE WHEN %(state)s::text IS NULL THEN %(size)s::int8 ELSE 10000 END
) AS flow
LEFT JOIN rota.flow_end AS ended ON ended.flow = flow.id AND ended.round = flow.round
LEFT JOIN rota.flow_stop AS stop ON stop.flow = flow.id AND stop.since <= clock_timestamp()
WHERE %(state)s::text IS NULL OR coalesce(ended.outcome, 'running') = %(state)s
ORDER BY flow.id DESC LIMIT %(size)s::int8
