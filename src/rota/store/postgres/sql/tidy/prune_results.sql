-- Remove a batch of the results of these flows; how many. Walks flow_node_order, and flow_result's
-- primary key.
WITH gone AS (
    DELETE FROM rota.flow_result
    WHERE ctid = ANY (ARRAY(
        SELECT result.ctid
        FROM (SELECT unnest(%(flows)s::int8[])) AS flow (id)
        CROSS JOIN LATERAL (SELECT node.id FROM rota.flow_node AS node WHERE node.flow = flow.id) AS node
        CROSS JOIN LATERAL (SELECT ctid FROM rota.flow_result WHERE flow_result.node = node.id) AS result
        LIMIT %(size)s::int8))
    RETURNING 1
)
SELECT count(*)::int4 FROM gone
