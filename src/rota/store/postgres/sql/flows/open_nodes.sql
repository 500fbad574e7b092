-- The next nodes, behind `after`, that have not ended, of a flow that is being stopped, and the
-- flow's round.
-- Walks flow_node_order.
SELECT node.id, flow.round
FROM rota.flow_stop AS stop JOIN rota.flow ON flow.id = stop.flow JOIN rota.flow_node AS node ON node.flow = stop.flow
WHERE stop.flow = %(flow)s::int8 AND stop.since <= clock_timestamp() AND node.id > %(after)s::int8 AND NOT EXISTS (
    SELECT FROM rota.flow_fact AS fact
    WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended')
ORDER BY node.flow, node.id LIMIT %(size)s::int8
