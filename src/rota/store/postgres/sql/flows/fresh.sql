-- The nodes of which something was written that the newest mark's snapshot did not see, and the
-- snapshot of this look: a settler that dies between its commit and its look leaves such nodes.
-- Locks nothing. Walks flow_arrival_xid and flow_fact_xid from the mark on.
WITH mark AS MATERIALIZED (
    SELECT snapshot FROM rota.flow_mark ORDER BY seq DESC LIMIT 1
)
SELECT pg_current_snapshot()::text, ARRAY(
    SELECT node FROM rota.flow_arrival WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
    UNION
    SELECT node FROM rota.flow_fact WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
    UNION
    SELECT came.node
    FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
    CROSS JOIN LATERAL (
        SELECT node FROM (SELECT node FROM rota.flow_arrival WHERE flow_arrival.xid = running.xid ORDER BY xid) AS arrival
        UNION ALL
        SELECT node FROM (SELECT node FROM rota.flow_fact WHERE flow_fact.xid = running.xid ORDER BY xid) AS fact
    ) AS came
)
