-- Nodes of running flows that were released more than `least` seconds ago and have not ended: how
-- many of their jobs are left; whether all have ended and a look at what is to be decided has
-- passed that by; and whether none of its jobs is there any more, told for few jobs alone. Among
-- the oldest and the newest 1,000 flows, of these the oldest 100 that run, 500 nodes of each, and
-- 200 nodes in all: what stands still is old.
-- Locks nothing. Walks: the ends of flow's primary key, flow_node_order, and the keys of flow_end
-- and flow_fact.
WITH mark AS MATERIALIZED (
    SELECT snapshot FROM rota.flow_mark ORDER BY seq DESC LIMIT 1
), running AS MATERIALIZED (
    SELECT flow.* FROM (
        (SELECT id, name, round FROM rota.flow ORDER BY id LIMIT 1000)
        UNION
        (SELECT id, name, round FROM rota.flow ORDER BY id DESC LIMIT 1000)
    ) AS flow
    WHERE NOT EXISTS (
        SELECT FROM rota.flow_end AS ended WHERE ended.flow = flow.id AND ended.round = flow.round)
    ORDER BY flow.id LIMIT 100
), open AS MATERIALIZED (
    SELECT running.id AS flow, running.name AS flow_name, node.*, released.at, released.xid
    FROM running
    CROSS JOIN LATERAL (
        SELECT node.id AS node, node.name, node.task, node.queue, node.expects, node.round, node.first_job, node.last_job
        FROM rota.flow_node AS node WHERE node.flow = running.id ORDER BY node.flow, node.id LIMIT 500
    ) AS node
    JOIN rota.flow_fact AS released
        ON released.node = node.node AND released.round = node.round AND released.fact = 'released'
    WHERE released.at < clock_timestamp() - make_interval(secs => %(least)s::float8) AND NOT EXISTS (
        SELECT FROM rota.flow_fact AS ended
        WHERE ended.node = node.node AND ended.round = node.round AND ended.fact = 'ended')
    ORDER BY released.at LIMIT 200
)
SELECT open.flow, open.flow_name, open.name, open.task, open.queue,
       extract(epoch FROM clock_timestamp() - open.at)::float8, open.expects - came.jobs,
       came.jobs >= open.expects AND came.seen IS NOT FALSE AND pg_visible_in_snapshot(open.xid, (SELECT snapshot FROM mark)),
       came.jobs < open.expects AND open.last_job - open.first_job < 100
           AND NOT EXISTS (SELECT FROM rota.timer WHERE timer.id BETWEEN open.first_job AND open.last_job)
           AND NOT EXISTS (
               SELECT FROM rota.log AS entry
               WHERE entry.id BETWEEN open.first_job AND open.last_job
                 AND NOT EXISTS (SELECT FROM rota.finished WHERE finished.id = entry.id))
FROM open
CROSS JOIN LATERAL (
    SELECT coalesce(sum(completed + failed + cancelled), 0)::int8 AS jobs,
           bool_and(pg_visible_in_snapshot(arrival.xid, (SELECT snapshot FROM mark))) AS seen
    FROM rota.flow_arrival AS arrival WHERE arrival.node = open.node
) AS came
ORDER BY open.at
