-- Those of these nodes (a JSON array of ids) whose failed and cancelled jobs a retry of their flow
-- would run again: they have failed or were cancelled, or they were skipped and something has that
-- they waited for, see reopen.sql.
-- `above` is what skipped nodes waited for, up to what has failed; `again` goes down from there.
WITH RECURSIVE above (id, outcome) AS (
    SELECT node.id, ended.outcome
    FROM rota_flow_node AS node
    JOIN rota_flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    WHERE node.id IN (SELECT value FROM json_each(:nodes)) AND ended.outcome <> 'completed'
    UNION
    SELECT node.id, ended.outcome
    FROM above
    JOIN rota_flow_edge AS edge ON edge.node = above.id
    JOIN rota_flow_node AS node ON node.id = edge.after
    JOIN rota_flow_fact AS ended ON ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended'
    WHERE above.outcome NOT IN ('failed', 'cancelled')
), again (id) AS (
    SELECT id FROM above WHERE outcome IN ('failed', 'cancelled')
    UNION
    SELECT above.id
    FROM again
    JOIN rota_flow_edge AS edge ON edge.after = again.id
    JOIN above ON above.id = edge.node
)
SELECT id FROM again WHERE id IN (SELECT value FROM json_each(:nodes)) ORDER BY id;
