-- Those of these nodes whose failed and cancelled jobs a retry of their flow would run again: they
-- have failed or were cancelled, or they were skipped and something has that they waited for, see
-- reopen.sql.
-- `above` is what skipped nodes waited for, up to what has failed; `again` goes down from there.
-- Locks nothing: touch.sql has locked these nodes for a retry of jobs. Walks the primary keys, and
-- flow_edge_after.
WITH RECURSIVE above (id, outcome) AS (
    SELECT node.id, ended.outcome
    FROM rota.flow_node AS node
    JOIN rota.flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    WHERE node.id = ANY (%(nodes)s::int8[]) AND ended.outcome <> 'completed'
    UNION
    SELECT node.id, ended.outcome
    FROM above
    JOIN rota.flow_edge AS edge ON edge.node = above.id
    JOIN rota.flow_node AS node ON node.id = edge.after
    JOIN rota.flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    WHERE above.outcome NOT IN ('failed', 'cancelled')
), again (id) AS (
    SELECT id FROM above WHERE outcome IN ('failed', 'cancelled')
    UNION
    SELECT above.id
    FROM again
    JOIN rota.flow_edge AS edge ON edge.after = again.id
    JOIN above ON above.id = edge.node
)
SELECT id FROM again WHERE id = ANY (%(nodes)s::int8[]) ORDER BY id
