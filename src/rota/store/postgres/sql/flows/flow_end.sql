-- End the flows whose nodes have all ended; gives these. Walks flow_node_order from its right end
-- to a node that has not ended: the nodes that were added last end last.
WITH flow AS MATERIALIZED (
    SELECT flow.*
    FROM (SELECT DISTINCT unnest(%(flows)s::int8[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT * FROM rota.flow WHERE flow.id = asked.id) AS flow
    WHERE NOT EXISTS (SELECT FROM rota.flow_end AS before WHERE before.flow = flow.id AND before.round = flow.round)
      AND coalesce((
        SELECT false FROM rota.flow_node AS node
        WHERE node.flow = flow.id AND NOT EXISTS (
            SELECT FROM rota.flow_fact AS fact
            WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended')
        ORDER BY node.flow DESC, node.id DESC LIMIT 1), true)
), ended AS (
    INSERT INTO rota.flow_end (flow, round, outcome, reason, keep_until)
    SELECT flow.id, flow.round, kind.outcome,
           CASE WHEN kind.outcome = 'cancelled' THEN came.reason
                WHEN kind.outcome = 'failed' THEN came.failed || ' has failed' END,
           clock_timestamp() + make_interval(secs => flow.keep)
    FROM flow
    CROSS JOIN LATERAL (
        SELECT min(node.name) FILTER (WHERE fact.outcome = 'failed') AS failed,
               bool_or(fact.outcome = 'cancelled') AS cancelled,
               min(fact.reason) FILTER (WHERE fact.outcome = 'cancelled') AS reason
        FROM rota.flow_node AS node
        JOIN rota.flow_fact AS fact ON fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended'
        WHERE node.flow = flow.id
    ) AS came
    CROSS JOIN LATERAL (
        SELECT CASE WHEN came.failed IS NOT NULL THEN 'failed' WHEN came.cancelled THEN 'cancelled'
                    ELSE 'completed' END AS outcome
    ) AS kind
    ON CONFLICT DO NOTHING
    RETURNING flow
), gone AS (
    DELETE FROM rota.flow_stop AS stop USING ended WHERE stop.flow = ended.flow
)
SELECT flow FROM ended
