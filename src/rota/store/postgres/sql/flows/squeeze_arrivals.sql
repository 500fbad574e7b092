-- Add what has arrived at a node up in one row. Two that do so at once share the rows among them.
-- Walks flow_arrival_node.
WITH gone AS (
    DELETE FROM rota.flow_arrival WHERE node = %(node)s::int8 RETURNING completed, failed, cancelled
)
INSERT INTO rota.flow_arrival (node, completed, failed, cancelled)
SELECT %(node)s::int8, sum(completed), sum(failed), sum(cancelled) FROM gone HAVING count(*) > 0
