-- The nodes of a flow in the order in which they were added, those behind `after`, or the one of a
-- name, with how many of their jobs have ended how.
SELECT node.id, node.name, node.task,
       CASE WHEN ended.outcome IS NOT NULL THEN ended.outcome WHEN released.node IS NOT NULL THEN 'running'
            ELSE 'waiting' END,
       node.expects,
       (SELECT coalesce(sum(completed), 0) FROM rota_flow_arrival AS came WHERE came.node = node.id),
       (SELECT coalesce(sum(failed), 0) FROM rota_flow_arrival AS came WHERE came.node = node.id),
       (SELECT coalesce(sum(cancelled), 0) FROM rota_flow_arrival AS came WHERE came.node = node.id),
       node.many, node.fail_fast, node.round, node.first_job, node.last_job, released.at, ended.at, ended.reason
FROM rota_flow_node AS node
LEFT JOIN rota_flow_fact AS released ON released.node = node.id AND released.round = node.round AND released.fact = 'released'
LEFT JOIN rota_flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
WHERE node.flow = :flow AND node.id > :after AND (:name IS NULL OR node.name = :name)
ORDER BY node.id LIMIT :size;
