-- Nodes of running flows that were released more than `least` seconds ago and have not ended: how
-- many of their jobs are left, and whether none of them is there any more, told for few jobs alone.
-- Among the oldest and the newest 1,000 flows, of these the oldest 100 that run, and 200 nodes in
-- all: what stands still is old. (What has ended is decided in the same transaction, so nothing is
-- passed by.)
-- Locks nothing. Walks: the ends of rota_flow's primary key, rota_flow_node_order, and the keys of
-- the facts.
WITH moment (now) AS (SELECT (julianday('now') - 2440587.5) * 86400.0),
running AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM (SELECT id, name, round FROM rota_flow ORDER BY id LIMIT 1000)
        UNION
        SELECT * FROM (SELECT id, name, round FROM rota_flow ORDER BY id DESC LIMIT 1000)
    ) AS flow
    WHERE NOT EXISTS (
        SELECT 1 FROM rota_flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
    ORDER BY id LIMIT 100
),
open AS MATERIALIZED (
    SELECT running.id AS flow, running.name AS flow_name, node.id AS node, node.name, node.task, node.queue,
           node.expects, node.first_job, node.last_job, released.at
    FROM running
    CROSS JOIN rota_flow_node AS node ON node.flow = running.id
    CROSS JOIN rota_flow_fact AS released
        ON released.node = node.id AND released.round = node.round AND released.fact = 'released'
    WHERE released.at < (SELECT now FROM moment) - :least AND NOT EXISTS (
        SELECT 1 FROM rota_flow_fact AS ended
        WHERE ended.node = node.id AND ended.round = node.round AND ended.fact = 'ended')
    LIMIT 200
)
SELECT flow, flow_name, name, task, queue, (SELECT now FROM moment) - at, expects - came, 0,
       came < expects AND last_job - first_job < 100 AND NOT EXISTS (
           SELECT 1 FROM rota_job AS job
           WHERE job.id BETWEEN first_job AND last_job AND job.state NOT IN ('completed', 'discarded', 'cancelled'))
FROM (
    SELECT open.*, (
        SELECT coalesce(sum(completed + failed + cancelled), 0) FROM rota_flow_arrival AS arrival
        WHERE arrival.node = open.node) AS came
    FROM open)
ORDER BY at;
