-- Nodes (a JSON array of ids) as they are: how many jobs they have and how many of these have ended
-- how, whether they were released, how they have ended, and why their flow is being stopped.
SELECT node.id, node.flow, node.expects, node.round, node.fail_fast, count(came.node),
       coalesce(sum(came.completed), 0), coalesce(sum(came.failed), 0), coalesce(sum(came.cancelled), 0),
       EXISTS (SELECT 1 FROM rota_flow_fact AS fact
               WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'released'),
       (SELECT outcome FROM rota_flow_fact AS fact
        WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended'),
       (SELECT reason FROM rota_flow_stop AS stop
        WHERE stop.flow = node.flow AND stop.since <= (julianday('now') - 2440587.5) * 86400.0)
FROM rota_flow_node AS node
LEFT JOIN rota_flow_arrival AS came ON came.node = node.id
WHERE node.id IN (SELECT value FROM json_each(:nodes))
GROUP BY node.id;
