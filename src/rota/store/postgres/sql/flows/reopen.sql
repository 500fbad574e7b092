-- Open the nodes of a flow again that have failed or were cancelled, in another round, and with
-- them whatever has ended that waits for one of these: it begins anew, as if it had never begun,
-- since they may end otherwise now.
-- Gives each node, whether its jobs may run at once (those of nodes do that were released before,
-- and begin not anew), and whether it begins anew.
-- Locks: the rows of these nodes. Walks flow_node_order, and flow_edge_after.
WITH RECURSIVE node AS MATERIALIZED (
    SELECT node.id, ended.outcome, released.node IS NOT NULL AS released
    FROM rota.flow_node AS node
    JOIN rota.flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    LEFT JOIN rota.flow_fact AS released
      ON released.node = node.id AND released.round = node.round AND released.fact = 'released'
    WHERE node.flow = %(flow)s::int8
), again AS (
    SELECT id, false AS anew FROM node WHERE outcome IN ('failed', 'cancelled')
    UNION
    SELECT node.id, true
    FROM again
    JOIN rota.flow_edge AS edge ON edge.after = again.id
    JOIN node ON node.id = edge.node
), each AS MATERIALIZED (
    SELECT id, bool_or(anew) AS anew FROM again GROUP BY id
), opened AS (
    UPDATE rota.flow_node AS node SET round = node.round + 1, touched = node.touched + 1
    FROM each WHERE node.id = each.id
    RETURNING node.id, node.round, each.anew
), runs AS MATERIALIZED (
    SELECT opened.id, opened.round, opened.anew, node.released AND NOT opened.anew AS now
    FROM opened JOIN node ON node.id = opened.id
), released AS (
    INSERT INTO rota.flow_fact (node, round, fact) SELECT id, round, 'released' FROM runs WHERE now
), flow AS (
    UPDATE rota.flow SET round = flow.round + 1 WHERE flow.id = %(flow)s::int8 AND EXISTS (SELECT FROM opened)
), stop AS (
    DELETE FROM rota.flow_stop WHERE flow_stop.flow = %(flow)s::int8 AND EXISTS (SELECT FROM opened)
)
SELECT id, now, anew FROM runs ORDER BY id
