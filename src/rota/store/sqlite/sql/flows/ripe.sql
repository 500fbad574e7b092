-- The nodes that wait for one of these (a JSON array of ids, which have ended) and for nothing
-- else, and of which nothing is decided; and what speaks against their release. Nodes of flows that
-- are being stopped are left out.
SELECT node.id, node.flow, node.round, node.expects, node.queue, node.first_job, node.last_job, node.run_at, node.delay,
       (SELECT min(other.name || CASE fact.outcome WHEN 'failed' THEN ' has ' ELSE ' was ' END || fact.outcome)
        FROM rota_flow_edge AS edge
        JOIN rota_flow_node AS other ON other.id = edge.after
        JOIN rota_flow_fact AS fact ON fact.node = other.id AND fact.round = other.round AND fact.fact = 'ended'
        WHERE edge.node = node.id AND edge.condition = 'completed' AND fact.outcome <> 'completed'),
       EXISTS (SELECT 1 FROM rota_flow_edge AS edge WHERE edge.node = node.id AND edge.condition = 'failed'),
       EXISTS (SELECT 1 FROM rota_flow_edge AS edge
               JOIN rota_flow_node AS other ON other.id = edge.after
               JOIN rota_flow_fact AS fact ON fact.node = other.id AND fact.round = other.round AND fact.fact = 'ended'
               WHERE edge.node = node.id AND edge.condition = 'failed' AND fact.outcome = 'failed')
FROM rota_flow_node AS node
WHERE node.id IN (SELECT edge.node FROM rota_flow_edge AS edge WHERE edge.after IN (SELECT value FROM json_each(:nodes)))
  AND NOT EXISTS (SELECT 1 FROM rota_flow_fact AS fact WHERE fact.node = node.id AND fact.round = node.round)
  AND NOT EXISTS (SELECT 1 FROM rota_flow_stop AS stop
                  WHERE stop.flow = node.flow AND stop.since <= (julianday('now') - 2440587.5) * 86400.0)
  AND NOT EXISTS (
      SELECT 1 FROM rota_flow_edge AS edge
      WHERE edge.node = node.id AND NOT EXISTS (
          SELECT 1 FROM rota_flow_node AS other
          JOIN rota_flow_fact AS fact ON fact.node = other.id AND fact.round = other.round AND fact.fact = 'ended'
          WHERE other.id = edge.after)
      ORDER BY edge.node DESC, edge.after DESC LIMIT 1)
ORDER BY node.id;
