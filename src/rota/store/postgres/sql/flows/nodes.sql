-- The nodes of a flow in the order in which they were added, those behind `after`, or the one of a
-- name, with how many of their jobs have ended how. Walks flow_node_order, and flow_arrival_node
-- for each.
SELECT node.id, node.name, node.task,
       CASE WHEN ended.outcome IS NOT NULL THEN ended.outcome WHEN released.node IS NOT NULL THEN 'running'
            ELSE 'waiting' END,
       node.expects, came.completed, came.failed, came.cancelled, node.many, node.fail_fast, node.round,
       node.first_job, node.last_job, released.at, ended.at, ended.reason
FROM (
    SELECT * FROM rota.flow_node AS node
    WHERE node.flow = %(flow)s::int8 AND node.id > %(after)s::int8
      AND (%(name)s::text IS NULL OR node.name = %(name)s)
    ORDER BY node.flow, node.id LIMIT %(size)s::int8
) AS node
CROSS JOIN LATERAL (
    SELECT coalesce(sum(completed), 0)::int8 AS completed, coalesce(sum(failed), 0)::int8 AS failed,
           coalesce(sum(cancelled), 0)::int8 AS cancelled
    FROM rota.flow_arrival WHERE flow_arrival.node = node.id
) AS came
LEFT JOIN rota.flow_fact AS released ON released.node = node.id AND released.round = node.round AND released.fact = 'released'
LEFT JOIN rota.flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
ORDER BY node.id
