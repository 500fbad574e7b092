-- Store nodes, whose jobs are stored. Those that wait for nothing are released. A name that is
-- taken (the job that adds nodes was retried by hand, and has added them before) gets the node's
-- number behind it.
WITH node AS (
    INSERT INTO rota.flow_node (id, flow, first_job, last_job, run_at, delay, expects, many, fail_fast, name, task, queue)
    SELECT id, %(flow)s::int8, first_job, last_job, run_at, delay, expects, many, fail_fast,
           CASE WHEN EXISTS (SELECT FROM rota.flow_node AS other WHERE other.flow = %(flow)s::int8 AND other.name = node.name)
                THEN node.name || '#' || id ELSE node.name END, task, queue
    FROM unnest(%(nodes)s::int8[], %(firsts)s::int8[], %(lasts)s::int8[], %(ats)s::timestamptz[], %(delays)s::float8[],
                %(expects)s::int4[], %(many)s::bool[], %(fail_fast)s::bool[], %(names)s::text[],
                %(tasks)s::text[], %(queues)s::text[])
        AS node (id, first_job, last_job, run_at, delay, expects, many, fail_fast, name, task, queue)
)
INSERT INTO rota.flow_fact (node, round, fact)
SELECT root.id, 0, 'released' FROM unnest(%(roots)s::int8[]) AS root (id)
