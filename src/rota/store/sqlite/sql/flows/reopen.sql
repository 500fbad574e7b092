-- The nodes of a flow that have failed or were cancelled, and with them whatever has ended that
-- waits for one of these: it begins anew, as if it had never begun, since they may end otherwise
-- now. Gives each node, its next round, whether its jobs may run at once (those of nodes do that
-- were released before, and begin not anew), and whether it begins anew.
WITH RECURSIVE node AS MATERIALIZED (
    SELECT node.id, node.round, ended.outcome, released.node IS NOT NULL AS released
    FROM rota_flow_node AS node
    JOIN rota_flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    LEFT JOIN rota_flow_fact AS released
      ON released.node = node.id AND released.round = node.round AND released.fact = 'released'
    WHERE node.flow = :flow
), again (id, anew) AS (
    SELECT id, 0 FROM node WHERE outcome IN ('failed', 'cancelled')
    UNION
    SELECT node.id, 1
    FROM again
    JOIN rota_flow_edge AS edge ON edge.after = again.id
    JOIN node ON node.id = edge.node
)
SELECT node.id, node.round + 1, node.released AND NOT max(again.anew), max(again.anew)
FROM again JOIN node ON node.id = again.id
GROUP BY node.id
ORDER BY node.id;
